// Moves payload between packets and lists of segments (vol. 1, 10.8.3.2). Work requests with a
// single segment, the common case, use memory_access.h alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/port/packet.h"
#include "dataplane/transport/interface/types.h"
#include "dataplane/transport/memory/region.h"

namespace paceline::transport {

// An access to the bytes [offset, offset + bytes) of a list, and the rights behind it.
struct SegmentAccess {
  const RegionTable& regions;
  std::span<const Segment> segments;
  std::uint32_t pd = 0;
  std::uint32_t qp_number = 0;
  bool responder = false;
  std::uint8_t needed = 0;  // rights
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};

// As load_payload. Elided segments give an elided payload, if all bytes of the access are elided.
MemoryResult gather_payload(const SegmentAccess& access, std::uint64_t place, Packet& packet);

// As store_payload.
MemoryResult scatter_payload(const SegmentAccess& access, std::uint64_t place, const Packet& packet,
                             bool& mismatch);

// Requires access.bytes == data.size().
MemoryResult scatter_bytes(const SegmentAccess& access, std::span<const std::byte> data);

// Whether the whole list lies within regions that grant the access.
bool segments_granted(const RegionTable& regions, std::span<const Segment> segments,
                      std::uint32_t pd, std::uint8_t needed);

}  // namespace paceline::transport
