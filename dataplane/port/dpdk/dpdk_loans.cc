#include "dataplane/port/dpdk/dpdk_loans.h"

#include <rte_cycles.h>
#include <rte_errno.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <sched.h>

#include <array>
#include <cassert>
#include <cstring>

#include "dataplane/port/dpdk/dpdk_mbuf.h"
#include "dataplane/wire/bytes/endian.h"
#include "dataplane/wire/headers/headers.h"

namespace paceline {

namespace {

using namespace dpdk;

enum class LoanState : std::uint32_t { free, lent, moving, moved, taken };

constexpr unsigned kSpinsBeforeYield = 1000;

// A cache line, for writing.
void fetch_line(const void* object, std::size_t line) {
  __builtin_prefetch(static_cast<const std::byte*>(object) + 64 * line, 1);
}

// Waits until `done`; the other thread may have lost its processor. False: a tenth of a second was
// not enough.
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
  rte_mbuf* segment = nullptr;  // payload and, behind it, ICRC; null: a driver has them
  std::byte* room = nullptr;    // of the packet, for the bytes
  std::array<std::byte, wire::kIcrcBytes> icrc{};
};

DpdkLoansMade DpdkLoans::make(const std::string& name, std::uint32_t most, int socket) {
  // Two segments per loan. A thread's cache in DPDK withholds some of them from other threads.
  constexpr std::uint32_t kCache = 64;
  rte_mempool* const pool =
      rte_pktmbuf_pool_create(name.c_str(), 2 * most + 4 * kCache, kCache, 0, 0, socket);
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
  static_cast<Loan*>(loan)->segment = nullptr;
  static_cast<Loan*>(loan)->state.store(LoanState::free, std::memory_order_release);
}

void DpdkLoans::expect(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) fetch_line(&loans_[(next_ + i) % most_], 0);
}

// Segments that refer to the loan, which ends when a driver has freed both.
bool DpdkLoans::give_segments(Loan& loan) {
  std::array<rte_mbuf*, 2> segments;
  if (rte_pktmbuf_alloc_bulk(pool_, segments.data(), 2) != 0) return false;
  rte_mbuf* const payload = segments[0];
  rte_mbuf* const icrc = segments[1];
  const auto refer = [&loan](rte_mbuf* segment, void* address, std::uint16_t bytes) {
    rte_pktmbuf_attach_extbuf(segment, address, reinterpret_cast<rte_iova_t>(address), bytes,
                              &loan.shared);
    segment->data_len = bytes;
  };
  refer(payload, loan.icrc.data(), 0);  // until it is known
  refer(icrc, loan.icrc.data(), wire::kIcrcBytes);
  payload->next = icrc;
  rte_mbuf_ext_refcnt_set(&loan.shared, 2);
  loan.segment = payload;
  return true;
}

bool DpdkLoans::attach(rte_mbuf* head, const Packet& packet, const std::byte* bytes) {
  Loan& loan = loans_[next_ % most_];
  if (loan.state.load(std::memory_order_acquire) != LoanState::free) return false;
  if (loan.segment == nullptr && !give_segments(loan)) return false;
  ++next_;
  loan.bytes = packet.payload_bytes;
  loan.room = packet.payload;
  wire::store_le32(loan.icrc.data(), packet.icrc);
  rte_mbuf* const payload = loan.segment;
  // Drivers only read what they send.
  auto* const address = const_cast<std::byte*>(bytes);
  payload->buf_addr = address;
  payload->buf_iova = reinterpret_cast<rte_iova_t>(address);
  payload->buf_len = packet.payload_bytes;
  payload->data_len = packet.payload_bytes;
  head->next = payload;
  head->nb_segs = 3;
  head->pkt_len = std::uint32_t{head->data_len} + packet.payload_bytes + wire::kIcrcBytes;
  loan.state.store(LoanState::lent, std::memory_order_release);
  return true;
}

DpdkLoans::Loan* DpdkLoans::loan_of(const rte_mbuf* head) {
  const rte_mbuf* const payload = head->next;
  if (payload == nullptr || !RTE_MBUF_HAS_EXTBUF(payload) || payload->shinfo->free_cb != returned) {
    return nullptr;
  }
  return static_cast<Loan*>(payload->shinfo->fcb_opaque);
}

void DpdkLoans::detach(rte_mbuf* head) {
  Loan* const loan = loan_of(head);
  assert(loan != nullptr);
  head->next = nullptr;
  head->nb_segs = 1;
  loan->state.store(LoanState::free, std::memory_order_release);
}

std::uint32_t DpdkLoans::icrc_of(const rte_mbuf* head) {
  return wire::load_le32(loan_of(head)->icrc.data());
}

// False: a receiver does not finish with it.
bool DpdkLoans::settle(Loan& loan, bool patient, std::size_t& copied) {
  LoanState state = LoanState::lent;
  if (loan.state.compare_exchange_strong(state, LoanState::moving, std::memory_order_acq_rel)) {
    // The frame stays where it is: nobody frees its packet without taking it first.
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

// The place of a line is written in an earlier line, so each step is a pass over all frames.
void DpdkLoans::fetch(std::span<rte_mbuf* const> heads) {
  // The mbuf, and the packet behind it, which is filled in.
  constexpr std::size_t kLines = (sizeof(rte_mbuf) + sizeof(Packet)) / 64;
  for (const rte_mbuf* const head : heads) {
    for (std::size_t line = 0; line < kLines; ++line) fetch_line(head, line);
  }
  for (const rte_mbuf* const head : heads) {
    const std::byte* const frame = buffer_of(head) + head->data_off;
    __builtin_prefetch(frame);
    __builtin_prefetch(frame + head->data_len - 1);
    if (head->next == nullptr) continue;
    __builtin_prefetch(head->next);
    __builtin_prefetch(&head->next->next);
  }
  for (const rte_mbuf* const head : heads) {
    const rte_mbuf* const payload = head->next;
    if (payload == nullptr) continue;
    if (RTE_MBUF_HAS_EXTBUF(payload)) fetch_line(payload->shinfo, 0);
    const std::byte* const bytes = buffer_of(payload) + payload->data_off;
    for (std::size_t line = 0; line < 4; ++line) __builtin_prefetch(bytes + 64 * line);
  }
}

bool DpdkLoans::take(rte_mbuf* head) {
  Loan* const found = loan_of(head);
  if (found == nullptr) return false;
  Loan& loan = *found;
  LoanState state = loan.state.load(std::memory_order_acquire);
  for (;;) {
    if (state == LoanState::taken) return true;  // a second look at the same frame
    // Its owner is about to copy it, and may have lost its processor in the middle.
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
