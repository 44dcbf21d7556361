// Payload between packets and regions: what SEND, WRITE and READ, requester and responder have in
// common. Rights and bounds were checked by the caller (Region::grants).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/packet_pool.h"
#include "dataplane/transport/memory/region.h"

namespace paceline::transport {

// The `bytes` at `address` become the packet's payload, with its pad. An elided region gives an
// elided payload: `place` is what its digest is made of, the address where the bytes go (WRITE) or
// come from (READ), or their offset in the message (SEND: neither end knows the other's address).
MemoryResult load_payload(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                          std::uint32_t bytes, std::uint64_t place, Packet& packet);

// The same without a copy, where that can be: the packet of `pool` refers to the bytes, which are
// many enough and at hand. Only for a request that is not completed before they have arrived
// (PacketPool::end_loans ends it otherwise), over a port that lends. False: nothing was done.
bool lend_payload(const Region& region, std::uint64_t address, std::uint32_t bytes,
                  PacketPool& pool, Packet& packet);

// The packet's first `bytes` of payload go to `address`. `mismatch` is set when an elided payload
// was meant for another `place`.
MemoryResult store_payload(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                           std::uint32_t bytes, std::uint64_t place, const Packet& packet,
                           bool& mismatch);

// The operation on the 8 bytes at `address`, which is a multiple of 8.
MemoryResult run_atomic(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                        const AtomicOperation& operation, std::uint64_t& original);

// Bytes that came in no payload: the value an atomic operation found, the header of a datagram.
MemoryResult store_bytes(const Region& region, const MemoryCaller& caller, std::uint64_t address,
                         std::span<const std::byte> bytes);

}  // namespace paceline::transport
