// Records of in-band telemetry in bytes: behind a packet in an emulated fabric, where switches put
// them, and in an XACK, which takes them back to the sender (docs/wire-protocol.md). A record is
// four numbers of 24 bits: rate of the link in Mb/s, queue in units of 16 bytes, bytes sent in
// units of 64, time in ns.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/protocol/int_stack.h"
#include "dataplane/wire/bytes/endian.h"

namespace paceline::wire {

inline constexpr std::size_t kIntRecordBytes = 12;
// What a data packet that collects records takes on the wire beyond a plain one, from its sender
// on: the header of HPCC (SIGCOMM 2019, section 4.1), with two bytes and eight for each of five
// hops. HPCC names the rate of a link by four bits, whose meaning the ends know. Emulated links
// have any rate, so our records take further bytes, which are not charged.
inline constexpr std::uint32_t kIntHeaderBytes = 42;

inline void store_int_record(std::byte* p, const IntHop& hop) {
  constexpr std::uint32_t kMost = 0xFF'FFFF;
  const std::uint32_t rate = std::min(hop.rate_mbps, kMost);
  const std::uint32_t queue = std::min(hop.queue_bytes / 16, kMost);
  const std::uint32_t sent = hop.sent_bytes / 64 & kMost;
  store_be32(p, rate << 8 | queue >> 16);
  store_be32(p + 4, queue << 16 | sent >> 8);
  store_be32(p + 8, sent << 24 | (hop.time_ns & kMost));
}

inline IntHop load_int_record(const std::byte* p) {
  const std::uint32_t a = load_be32(p);
  const std::uint32_t b = load_be32(p + 4);
  const std::uint32_t c = load_be32(p + 8);
  IntHop hop;
  hop.rate_mbps = a >> 8;
  hop.queue_bytes = ((a & 0xFF) << 16 | b >> 16) * 16;
  hop.sent_bytes = ((b & 0xFFFF) << 8 | c >> 24) * 64;
  hop.time_ns = c & 0xFF'FFFF;
  return hop;
}

}  // namespace paceline::wire
