// XACK, the extended acknowledgement of selective repeat (docs/wire-protocol.md has the byte
// table). It goes to the queue pair it is about. Its BTH carries the next PSN that the responder
// expects: everything before it has arrived. The body says what has arrived beyond, and what the
// packet that triggered it has seen of its path.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/wire/extensions/int_record.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/parse.h"

namespace paceline::wire {

inline constexpr std::uint8_t kXackVersion = 1;
inline constexpr std::size_t kXackBytes = 44;
inline constexpr std::uint32_t kXackBits = 128;
// In front of records of telemetry: how many there are (1 byte, 1 reserved), their path (2).
inline constexpr std::size_t kXackRecordsPrefix = 4;
// Bytes of the longest XACK, with a tag, IPv6 and all records, beyond a header buffer.
inline constexpr std::size_t kXackSpillBytes =
    kEthernetBytes + kVlanBytes + kIpv6Bytes + kUdpBytes + kBthBytes + kXackBytes +
    kXackRecordsPrefix + kIntHops * kIntRecordBytes - kHeaderBufferBytes;

struct Xack {
  Aeth aeth{};                     // ACK with credits, RNR NAK or NAK: of the expected PSN
  Psn trigger;                     // the packet that it answers
  bool duplicate = false;          // which had come before
  bool marked = false;             // marked_port is valid
  bool trimmed = false;            // the packet that it answers came without its payload
  std::uint16_t trigger_port = 0;  // UDP source port of that packet: the path it took
  std::uint16_t marked_port = 0;   // of the last packet that came CE-marked since the last XACK
  std::uint16_t hold_ns = 0;       // from its arrival to this answer; 65535: that or more
  // Bit i is set: PSN expected + 1 + bitmap_offset + i has arrived.
  std::uint16_t bitmap_offset = 0;
  std::uint32_t marked_bytes = 0;  // CE-marked bytes on the wire received since RTR, modulo 2^32
  std::uint32_t arrival_ns = 0;    // of the trigger, on the responder's clock, modulo 2^32
  std::array<std::uint64_t, kXackBits / 64> bitmap{};  // bit i: bit i % 64 of word i / 64
  // Records of telemetry that the trigger collected, as in a packet's tail (int_record.h): a view
  // into the body when parsed, into any buffer when built. Only to peers that asked for records.
  std::span<const std::byte> records;  // of kIntRecordBytes each, at most kIntHops
  std::uint16_t path = 0;              // IntStack::path, with records

  bool bit(std::uint32_t i) const { return (bitmap[i / 64] >> (i % 64) & 1U) != 0; }
  void set_bit(std::uint32_t i) { bitmap[i / 64] |= std::uint64_t{1} << (i % 64); }
};

// With records, `out` is the beginning of kHeaderBufferBytes + kXackSpillBytes bytes.
std::size_t build_xack(const HeaderTemplate& header, HeaderBuffer out, std::uint32_t dest_qpn,
                       Psn expected, const Xack& xack);

// `body`: xack_body of a parsed packet. Returns ok and fills `out`, or control_version,
// control_length, control_field, or bad_aeth. Reserved bits and bytes are ignored.
[[nodiscard]] ParseError parse_xack(std::span<const std::byte> body, Xack& out);

inline std::span<const std::byte> xack_body(std::span<const std::byte> headers,
                                            const ParsedPacket& packet) {
  return control_body(headers, packet);
}

}  // namespace paceline::wire
