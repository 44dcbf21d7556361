#include "dataplane/transport/memory/memory_access.h"

#include <atomic>
#include <cassert>
#include <cstring>

namespace paceline::transport {

namespace {

// Below this size, a copy costs no more than finding the bytes a second time.
constexpr std::uint32_t kLeastLent = 256;

}  // namespace

bool lend_payload(const Region& region, std::uint64_t address, std::uint32_t bytes,
                  PacketPool& pool, Packet& packet) {
  // A payload that needs a pad needs a buffer for it.
  if (bytes < kLeastLent || bytes % 4 != 0) return false;
  const std::byte* from = nullptr;
  if (region.kind == RegionKind::plain) {
    from = region.memory + (address - region.base);
  } else if (region.kind == RegionKind::provided) {
    from = region.provider->at(address - region.base, bytes);
  }
  if (from == nullptr) return false;
  packet.payload_bytes = static_cast<std::uint16_t>(bytes);
  pool.lend(packet, from);
  return true;
}

MemoryResult load_payload(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                          std::uint32_t bytes, std::uint64_t place, Packet& packet) {
  const std::uint32_t padded = (bytes + 3U) & ~3U;
  packet.payload_bytes = static_cast<std::uint16_t>(padded);
  if (region.kind == RegionKind::elided) {
    packet.payload_kind = PayloadKind::elided;
    packet.digest = elided_digest(place, bytes);
    return MemoryResult::done;
  }
  assert(packet.payload != nullptr);
  packet.payload_kind = PayloadKind::owned;
  if (region.kind == RegionKind::plain) {
    std::memcpy(packet.payload, region.memory + (address - region.base), bytes);
  } else {
    const MemoryResult result =
        region.provider->read(caller, address - region.base, {packet.payload, bytes});
    if (result != MemoryResult::done) return result;
  }
  if (padded != bytes) std::memset(packet.payload + bytes, 0, padded - bytes);
  return MemoryResult::done;
}

MemoryResult store_payload(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                           std::uint32_t bytes, std::uint64_t place, const Packet& packet,
                           bool& mismatch) {
  if (packet.payload_kind == PayloadKind::elided) {
    mismatch = packet.digest != elided_digest(place, bytes);
    return region.kind == RegionKind::elided ? MemoryResult::done : MemoryResult::fault;
  }
  if (!packet.has_bytes()) return MemoryResult::fault;
  switch (region.kind) {
    case RegionKind::plain:
      // A lent payload may overlap its destination if a program writes to itself.
      std::memmove(region.memory + (address - region.base), packet.bytes(), bytes);
      return MemoryResult::done;
    case RegionKind::provided:
      return region.provider->write(caller, address - region.base, {packet.bytes(), bytes});
    case RegionKind::elided:
      return MemoryResult::done;
    case RegionKind::none:
      break;
  }
  return MemoryResult::fault;
}

MemoryResult run_atomic(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                        const AtomicOperation& operation, std::uint64_t& original) {
  if (region.kind == RegionKind::provided) {
    return region.provider->atomic(caller, address - region.base, operation, original);
  }
  if (region.kind != RegionKind::plain) return MemoryResult::fault;  // elided memory holds no value
  std::byte* const memory = region.memory + (address - region.base);
  if (reinterpret_cast<std::uintptr_t>(memory) % alignof(std::uint64_t) != 0) {
    // The virtual address is aligned, the host's is not: no other engine can share this word
    // anyway.
    std::memcpy(&original, memory, sizeof original);
    const std::uint64_t result = operation.result(original);
    std::memcpy(memory, &result, sizeof result);
    return MemoryResult::done;
  }
  // Other engines may work on the same word at the same time.
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(memory));
  original = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(original, operation.result(original))) {
  }
  return MemoryResult::done;
}

MemoryResult store_bytes(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                         std::span<const std::byte> bytes) {
  switch (region.kind) {
    case RegionKind::plain:
      std::memmove(region.memory + (address - region.base), bytes.data(), bytes.size());
      return MemoryResult::done;
    case RegionKind::provided:
      return region.provider->write(caller, address - region.base, bytes);
    case RegionKind::elided:
      return MemoryResult::done;
    case RegionKind::none:
      break;
  }
  return MemoryResult::fault;
}

}  // namespace paceline::transport
