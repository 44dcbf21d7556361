// The invariant CRC of RoCEv2 (IBTA vol. 1, 7.8.1 and annex A17.3.3): CRC-32 over eight bytes of
// ones in place of a local route header, then the IP header through the pad, with the fields that
// switches may change taken as ones: IPv4 type of service, time to live and checksum; IPv6 traffic
// class, flow label and hop limit; the UDP checksum; byte 4 of the base transport header (FECN,
// BECN).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::wire {

// `headers`: a packet's serialised headers from Ethernet (or from wherever `l3_offset` is counted)
// to the end of the extension headers at least; `rest`: whatever follows, payload and pad, without
// ICRC. Where headers end and rest begins does not change the result, as long as headers hold the
// base transport header. The packet must have been parsed or built: IPv4 without options or IPv6,
// then UDP. The result goes on the wire with store_le32.
std::uint32_t icrc(std::span<const std::byte> headers, std::size_t l3_offset,
                   std::span<const std::byte> rest = {});

// For a contiguous frame: over [l3_offset, icrc_offset).
inline std::uint32_t icrc_of_frame(std::span<const std::byte> frame, std::size_t l3_offset,
                                   std::size_t icrc_offset) {
  return icrc(frame.first(icrc_offset), l3_offset);
}

}  // namespace paceline::wire
