// Moves payload between packets and regions: what SEND, WRITE and READ, requester and responder
// have in common. The caller has checked rights and bounds (Region::grants).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/packet_pool.h"
#include "dataplane/transport/memory/region.h"

namespace paceline::transport {

// The `bytes` at `address` become the packet's payload, with its pad. An elided region gives an
// elided payload. Its digest is made from `place`: the address where the bytes go (WRITE) or come
// from (READ), or their offset in the message (SEND: neither end knows the other's address).
MemoryResult load_payload(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                          std::uint32_t bytes, std::uint64_t place, Packet& packet);

// The same without a copy, if possible: the packet of `pool` refers to the bytes. The port must
// lend, and the bytes must be at hand and enough to be worth it. Only for a request that completes
// after they have arrived (PacketPool::end_loans ends the loan otherwise). False: nothing was done.
bool lend_payload(const Region& region, std::uint64_t address, std::uint32_t bytes,
                  PacketPool& pool, Packet& packet);

// The packet's first `bytes` of payload go to `address`. Sets `mismatch` when an elided payload was
// meant for another `place`.
MemoryResult store_payload(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                           std::uint32_t bytes, std::uint64_t place, const Packet& packet,
                           bool& mismatch);

// Carries out the operation on the 8 bytes at `address`, which is a multiple of 8.
MemoryResult run_atomic(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                        const AtomicOperation& operation, std::uint64_t& original);

// Bytes that were not in a payload: the value that an atomic operation found, the header of a
// datagram.
MemoryResult store_bytes(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                         std::span<const std::byte> bytes);

}  // namespace paceline::transport
