#include "dataplane/transport/message/scatter_gather.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "dataplane/transport/memory/memory_access.h"

namespace paceline::transport {

namespace {

MemoryCaller caller_of(const SegmentAccess& access, std::uint32_t done) {
  return {access.qp_number, access.responder, static_cast<std::uint32_t>(access.offset) + done};
}

// Calls piece(region, address, bytes, done) for the pieces of the range, in order, until one does
// not return `done`; the argument `done` counts the bytes before the piece.
template <class Piece>
MemoryResult for_each_piece(const SegmentAccess& a, Piece&& piece) {
  std::uint64_t skip = a.offset;
  std::uint32_t done = 0;
  for (const Segment& segment : a.segments) {
    if (done == a.bytes) break;
    if (skip >= segment.length) {
      skip -= segment.length;
      continue;
    }
    const auto bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(segment.length - skip, a.bytes - done));
    const std::uint64_t address = segment.address + skip;
    const Region* region = a.regions.find(segment.key);
    if (region == nullptr || !region->grants(a.pd, a.needed, address, bytes)) {
      return MemoryResult::fault;
    }
    const MemoryResult result = piece(*region, address, bytes, done);
    if (result != MemoryResult::done) return result;
    done += bytes;
    skip = 0;
  }
  return done == a.bytes ? MemoryResult::done : MemoryResult::fault;
}

}  // namespace

MemoryResult gather_payload(const SegmentAccess& access, std::uint64_t place, Packet& packet) {
  const std::uint32_t padded = (access.bytes + 3U) & ~3U;
  packet.payload_bytes = static_cast<std::uint16_t>(padded);
  std::uint32_t elided = 0;
  const MemoryResult result = for_each_piece(
      access,
      [&](const Region& region, std::uint64_t address, std::uint32_t bytes, std::uint32_t done) {
        switch (region.kind) {
          case RegionKind::plain:
            std::memcpy(packet.payload + done, region.memory + (address - region.base), bytes);
            return MemoryResult::done;
          case RegionKind::provided:
            return region.provider->read(caller_of(access, done), address - region.base,
                                         {packet.payload + done, bytes});
          case RegionKind::elided:
            elided += bytes;
            return MemoryResult::done;
          case RegionKind::none:
            break;
        }
        return MemoryResult::fault;
      });
  if (result != MemoryResult::done) return result;
  if (elided != 0) {
    packet.payload_kind = PayloadKind::elided;
    packet.digest = elided_digest(place, access.bytes);
    return elided == access.bytes ? MemoryResult::done : MemoryResult::fault;
  }
  packet.payload_kind = PayloadKind::owned;
  std::memset(packet.payload + access.bytes, 0, padded - access.bytes);
  return MemoryResult::done;
}

MemoryResult scatter_bytes(const SegmentAccess& access, std::span<const std::byte> data) {
  assert(access.bytes == data.size());
  return for_each_piece(access, [&](const Region& region, std::uint64_t address,
                                    std::uint32_t bytes, std::uint32_t done) {
    return store_bytes(region, caller_of(access, done), address, data.subspan(done, bytes));
  });
}

MemoryResult scatter_payload(const SegmentAccess& access, std::uint64_t place, const Packet& packet,
                             bool& mismatch) {
  if (packet.has_bytes()) {
    return scatter_bytes(access, {packet.bytes(), access.bytes});
  }
  if (packet.payload_kind != PayloadKind::elided) return MemoryResult::fault;
  mismatch = packet.digest != elided_digest(place, access.bytes);
  return for_each_piece(
      access, [](const Region& region, std::uint64_t, std::uint32_t, std::uint32_t) {
        return region.kind == RegionKind::elided ? MemoryResult::done : MemoryResult::fault;
      });
}

bool segments_granted(const RegionTable& regions, std::span<const Segment> segments,
                      std::uint32_t pd, std::uint8_t needed) {
  return std::all_of(segments.begin(), segments.end(), [&](const Segment& segment) {
    if (segment.length == 0) return true;
    const Region* region = regions.find(segment.key);
    return region != nullptr && region->grants(pd, needed, segment.address, segment.length);
  });
}

}  // namespace paceline::transport
