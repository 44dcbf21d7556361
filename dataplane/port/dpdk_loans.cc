#include "dataplane/port/dpdk_loans.h"

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>

#include <array>
#include <cassert>
#include <cstring>

#include "dataplane/port/dpdk_mbuf.h"
#include "dataplane/wire/endian.h"
#include "dataplane/wire/headers.h"

namespace paceline {

namespace {

using namespace dpdk;

enum class LoanState : std::uint32_t { free, lent, moving, moved, taken };

constexpr std::uint16_t kSegmentRoom = 64;  // for an ICRC; a line of its own
constexpr unsigned kSpinsBeforeYield = 1000;

// Until `done`; the other thread may have lost its processor. False: a tenth of a second was not
// enough.
template <class Done>
bool wait_for(const Done& done) {
  std::uint64_t until = 0;
  for (unsigned spins = 0; !done(); ++spins) {
    if (spins < kSpinsBeforeYield) {
      rte_pause();
      continue;
    }
    const std::uint64_t now = rte_get_tsc_cycles();
    if (until == 0) until = now + rte_get_tsc_hz() / 10;
    if (now > until) return false;
    sched_yield();
  }
  return true;
}

}  // namespace

// A line each: sender and receiver work on neighbours at the same time.
struct alignas(64) DpdkLoans::Loan {
  rte_mbuf_ext_shared_info shared{};
  std::atomic<LoanState> state{LoanState::free};
  std::uint32_t bytes = 0;
  rte_mbuf* segment = nullptr;
  std::byte* room = nullptr;  // of the packet, for the bytes
};

DpdkLoansMade DpdkLoans::make(const std::string& name, std::uint32_t most, int socket) {
  // Two segments a loan. A thread's cache in DPDK keeps some of them from others.
  constexpr std::uint32_t kCache = 64;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create(name.c_str(), 2 * most + 4 * kCache, kCache, 0, kSegmentRoom, socket);
  if (pool == nullptr) {
    return {nullptr, "segments \"" + name + "\": " + std::string(rte_strerror(rte_errno))};
  }
  return {std::unique_ptr<DpdkLoans>(new DpdkLoans(pool, most)), ""};
}

DpdkLoans::DpdkLoans(rte_mempool* pool, std::uint32_t most)
    : pool_(pool), most_(most), loans_(std::make_unique<Loan[]>(most)) {
  for (std::uint32_t i = 0; i < most; ++i) {
    loans_[i].shared.free_cb = returned;
    loans_[i].shared.fcb_opaque = &loans_[i];
  }
}

DpdkLoans::~DpdkLoans() { rte_mempool_free(pool_); }

void DpdkLoans::returned(void* /*address*/, void* loan) {
  static_cast<Loan*>(loan)->state.store(LoanState::free, std::memory_order_release);
}

bool DpdkLoans::attach(rte_mbuf* head, const Packet& packet, const std::byte* bytes) {
  Loan& loan = loans_[next_ % most_];
  if (loan.state.load(std::memory_order_acquire) != LoanState::free) return false;
  std::array<rte_mbuf*, 2> segments;
  if (rte_pktmbuf_alloc_bulk(pool_, segments.data(), 2) != 0) return false;
  ++next_;
  rte_mbuf* const payload = segments[0];
  rte_mbuf* const icrc = segments[1];
  loan.bytes = packet.payload_bytes;
  loan.segment = payload;
  loan.room = packet.payload;
  rte_mbuf_ext_refcnt_set(&loan.shared, 1);
  // Drivers only read what they send.
  auto* const address = const_cast<std::byte*>(bytes);
  rte_pktmbuf_attach_extbuf(payload, address, reinterpret_cast<rte_iova_t>(address),
                            packet.payload_bytes, &loan.shared);
  payload->data_len = packet.payload_bytes;
  payload->next = icrc;
  icrc->data_off = 0;
  icrc->data_len = wire::kIcrcBytes;
  wire::store_le32(buffer_of(icrc), packet.icrc);
  head->next = payload;
  head->nb_segs = 3;
  head->pkt_len = std::uint32_t{head->data_len} + packet.payload_bytes + wire::kIcrcBytes;
  loan.state.store(LoanState::lent, std::memory_order_release);
  return true;
}

void DpdkLoans::detach(rte_mbuf* head) {
  rte_pktmbuf_free(head->next);
  head->next = nullptr;
  head->nb_segs = 1;
}

// False: a receiver does not come to an end with it.
bool DpdkLoans::settle(Loan& loan, bool patient, std::size_t& copied) {
  LoanState state = LoanState::lent;
  if (loan.state.compare_exchange_strong(state, LoanState::moving, std::memory_order_acq_rel)) {
    // The frame stays where it is: nobody frees its packet without having taken it first.
    std::memcpy(loan.room, loan.segment->buf_addr, loan.bytes);
    loan.segment->buf_addr = loan.room;
    loan.segment->buf_iova = reinterpret_cast<rte_iova_t>(loan.room);
    loan.state.store(LoanState::moved, std::memory_order_release);
    ++copied;
    return true;
  }
  if (state != LoanState::taken) return true;
  const auto done = [&] { return loan.state.load(std::memory_order_acquire) != LoanState::taken; };
  return patient ? wait_for(done) : done();
}

std::size_t DpdkLoans::recall() {
  std::size_t copied = 0;
  bool patient = true;
  if (next_ - oldest_ > most_) oldest_ = next_ - most_;  // earlier ones were free to be used again
  for (std::uint64_t i = oldest_; i != next_; ++i) {
    Loan& loan = loans_[i % most_];
    if (!settle(loan, patient, copied)) {
      ++overdue_;
      patient = false;  // the others are held by the same receiver
    }
    if (i == oldest_ && loan.state.load(std::memory_order_acquire) == LoanState::free) ++oldest_;
  }
  return copied;
}

std::size_t DpdkLoans::out() const {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < most_; ++i) {
    if (loans_[i].state.load(std::memory_order_acquire) != LoanState::free) ++count;
  }
  return count;
}

bool DpdkLoans::take(rte_mbuf* head) {
  rte_mbuf* const payload = head->next;
  if (payload == nullptr || !RTE_MBUF_HAS_EXTBUF(payload) || payload->shinfo->free_cb != returned) {
    return false;
  }
  Loan& loan = *static_cast<Loan*>(payload->shinfo->fcb_opaque);
  LoanState state = loan.state.load(std::memory_order_acquire);
  for (;;) {
    if (state == LoanState::taken) return true;  // a second look at the same frame
    // Its owner is about to have copied it, and may have lost its processor in the middle.
    if (state == LoanState::moving) {
      sched_yield();
      state = loan.state.load(std::memory_order_acquire);
      continue;
    }
    if (loan.state.compare_exchange_weak(state, LoanState::taken, std::memory_order_acq_rel)) {
      return true;
    }
  }
}

}  // namespace paceline
