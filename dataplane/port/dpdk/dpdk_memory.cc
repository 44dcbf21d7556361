#include "dataplane/port/dpdk/dpdk_memory.h"

#include <rte_errno.h>
#include <rte_mempool.h>

#include <algorithm>
#include <array>
#include <new>
#include <utility>

#include "dataplane/port/dpdk/dpdk_mbuf.h"

namespace paceline {

namespace {

using namespace dpdk;

// Physical devices want buffers in whole kilobytes behind the headroom: some round down to that.
constexpr std::uint32_t kBufferGrain = 1024;

// Headers may stand in front of a received payload, once more those of the next user.
std::uint32_t data_room(std::uint16_t payload_room) {
  const auto frame =
      static_cast<std::uint32_t>(kMaxHeaderBytes + std::size_t{payload_room} + kTailBytes);
  return RTE_PKTMBUF_HEADROOM + (frame + kBufferGrain - 1) / kBufferGrain * kBufferGrain;
}

void construct(rte_mempool*, void*, void* object, unsigned) {
  auto* const mbuf = static_cast<rte_mbuf*>(object);
  auto* const packet = new (static_cast<void*>(packet_of(mbuf))) Packet;
  packet->payload = buffer_of(mbuf) + RTE_PKTMBUF_HEADROOM;
}

}  // namespace

DpdkMemoryMade DpdkMemory::make(const DpdkMemorySettings& settings) {
  const auto refuse = [&settings](const std::string& why) {
    return DpdkMemoryMade{nullptr, "packet memory \"" + settings.name + "\": " + why};
  };
  if (settings.name.empty() || settings.name.size() > 20) {
    return refuse("a name has 1 to 20 characters");
  }
  if (settings.packets < 64) {
    return refuse("packets = " + std::to_string(settings.packets) + ": allowed is 64 or more");
  }
  const std::uint32_t room = data_room(settings.payload_room);
  if (room > 65535) {
    return refuse("payload_room = " + std::to_string(settings.payload_room) +
                  ": allowed is 63,000 or less");
  }
  const std::uint32_t cache = std::min(
      {settings.thread_cache, std::uint32_t{RTE_MEMPOOL_CACHE_MAX_SIZE}, settings.packets * 2 / 3});
  rte_mempool* const pool =
      rte_pktmbuf_pool_create(settings.name.c_str(), settings.packets, cache, sizeof(Packet),
                              static_cast<std::uint16_t>(room), settings.socket);
  if (pool == nullptr) {
    const std::uint64_t bytes =
        std::uint64_t{settings.packets} * (room + sizeof(rte_mbuf) + sizeof(Packet) + 64);
    return refuse(std::string(rte_strerror(rte_errno)) + ", for " + std::to_string(bytes >> 20) +
                  " MB in " + std::to_string(settings.packets) + " packets");
  }
  rte_mempool_obj_iter(pool, construct, nullptr);
  return {std::unique_ptr<DpdkMemory>(new DpdkMemory(settings, pool)), ""};
}

DpdkMemory::~DpdkMemory() { rte_mempool_free(pool_); }

std::size_t DpdkMemory::take(std::span<Packet*> out) {
  constexpr std::size_t kMost = 64;
  constexpr std::size_t kTouched = (sizeof(rte_mbuf) + sizeof(Packet) + RTE_PKTMBUF_HEADROOM) / 64;
  std::size_t taken = 0;
  while (taken < out.size()) {
    std::array<void*, kMost> mbufs;
    auto n = static_cast<unsigned>(std::min(kMost, out.size() - taken));
    // The call takes all or nothing: if there are fewer than wanted, halves still get what there
    // is.
    while (n != 0 && rte_mempool_get_bulk(pool_, mbufs.data(), n) != 0) n /= 2;
    if (n == 0) break;
    for (unsigned i = 0; i < n; ++i) {
      auto* const mbuf = static_cast<rte_mbuf*>(mbufs[i]);
      // Another thread may have freed it. The mbuf, the packet, and where headers are put.
      for (std::size_t line = 0; line < kTouched; ++line) {
        __builtin_prefetch(reinterpret_cast<std::byte*>(mbuf) + 64 * line, 1);
      }
      out[taken++] = packet_of(mbuf);
    }
  }
  return taken;
}

void DpdkMemory::give(std::span<Packet* const> packets) {
  constexpr std::size_t kMost = 64;
  while (!packets.empty()) {
    std::array<void*, kMost> mbufs;
    const std::size_t n = std::min(kMost, packets.size());
    for (std::size_t i = 0; i < n; ++i) mbufs[i] = mbuf_of(packets[i]);
    rte_mempool_put_bulk(pool_, mbufs.data(), static_cast<unsigned>(n));
    packets = packets.subspan(n);
  }
}

DpdkLoans* DpdkMemory::make_loans(std::uint32_t most, std::string& error) {
  DpdkLoansMade made = DpdkLoans::make(settings_.name + "-s" + std::to_string(loans_.size()), most,
                                       settings_.socket);
  error = made.error;
  if (made.loans == nullptr) return nullptr;
  return loans_.emplace_back(std::move(made.loans)).get();
}

std::size_t DpdkMemory::lent() const {
  std::size_t count = 0;
  for (const auto& loans : loans_) count += loans->out();
  return count;
}

std::uint16_t DpdkMemory::frame_room() const {
  return static_cast<std::uint16_t>(rte_pktmbuf_data_room_size(pool_) - RTE_PKTMBUF_HEADROOM);
}

std::size_t DpdkMemory::outside() const { return rte_mempool_in_use_count(pool_); }

}  // namespace paceline
