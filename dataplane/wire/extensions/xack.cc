#include "dataplane/wire/extensions/xack.h"

#include <cassert>
#include <cstring>

namespace paceline::wire {

namespace {
constexpr unsigned kDuplicate = 0x01;
constexpr unsigned kMarked = 0x02;
constexpr unsigned kRecords = 0x04;
constexpr unsigned kTrimmed = 0x08;
}  // namespace

static_assert(properties(Opcode::xack).extension_bytes == kXackBytes);
// Even with a tag and IPv6 it fits the header buffer.
static_assert(kEthernetBytes + kVlanBytes + kIpv6Bytes + kUdpBytes + kBthBytes + kXackBytes <=
              kHeaderBufferBytes);

std::size_t build_xack(const HeaderTemplate& header, HeaderBuffer out, std::uint32_t dest_qpn,
                       Psn expected, const Xack& xack) {
  TransportFields fields;
  fields.opcode = Opcode::xack;
  fields.dest_qpn = dest_qpn;
  fields.psn = expected;
  const std::size_t more = xack.records.empty() ? 0 : kXackRecordsPrefix + xack.records.size();
  const std::size_t bytes = build_body(header, out, fields, kXackBytes + more);
  std::byte* const p = out.data() + header.header_bytes;
  store_u8(p, kXackVersion);
  store_u8(p + 1, static_cast<std::uint8_t>(
                      (xack.duplicate ? kDuplicate : 0U) | (xack.marked ? kMarked : 0U) |
                      (more != 0 ? kRecords : 0U) | (xack.trimmed ? kTrimmed : 0U)));
  store_be16(p + 2, xack.trigger_port);
  xack.aeth.store(p + 4);
  store_be32(p + 8, xack.trigger.value());
  store_be16(p + 12, xack.bitmap_offset);
  store_be16(p + 14, xack.hold_ns);
  store_be32(p + 16, xack.marked_bytes);
  store_be32(p + 20, xack.arrival_ns);
  store_be16(p + 24, xack.marked_port);
  store_be16(p + 26, 0);
  store_be64(p + 28, xack.bitmap[0]);
  store_be64(p + 36, xack.bitmap[1]);
  if (more != 0) [[unlikely]] {
    assert(xack.records.size() <= kIntHops * kIntRecordBytes);
    const auto count = static_cast<std::uint32_t>(xack.records.size() / kIntRecordBytes);
    store_be32(p + kXackBytes, count << 24 | xack.path);
    std::memcpy(p + kXackBytes + kXackRecordsPrefix, xack.records.data(), xack.records.size());
  }
  return bytes;
}

ParseError parse_xack(std::span<const std::byte> body, Xack& out) {
  if (body.empty()) return ParseError::control_length;
  const std::byte* const p = body.data();
  if (load_u8(p) != kXackVersion) return ParseError::control_version;
  if (body.size() < kXackBytes) return ParseError::control_length;
  const Aeth aeth = Aeth::load(p + 4);
  if (!aeth.is_valid()) return ParseError::bad_aeth;
  const unsigned flags = load_u8(p + 1);
  out.records = {};
  if ((flags & kRecords) != 0) [[unlikely]] {
    if (body.size() < kXackBytes + kXackRecordsPrefix) return ParseError::control_length;
    const std::size_t count = load_u8(p + kXackBytes);
    if (count == 0 || count > kIntHops) return ParseError::control_field;
    out.records = body.subspan(kXackBytes + kXackRecordsPrefix);
    out.path = load_be16(p + kXackBytes + 2);
    if (out.records.size() != count * kIntRecordBytes) return ParseError::control_length;
  } else if (body.size() != kXackBytes) {
    return ParseError::control_length;
  }
  out.aeth = aeth;
  out.trigger = Psn(load_be32(p + 8) & 0xFF'FFFFU);
  out.duplicate = (flags & kDuplicate) != 0;
  out.marked = (flags & kMarked) != 0;
  out.trimmed = (flags & kTrimmed) != 0;
  out.trigger_port = load_be16(p + 2);
  out.bitmap_offset = load_be16(p + 12);
  out.hold_ns = load_be16(p + 14);
  out.marked_bytes = load_be32(p + 16);
  out.arrival_ns = load_be32(p + 20);
  out.marked_port = load_be16(p + 24);
  out.bitmap = {load_be64(p + 28), load_be64(p + 36)};
  return ParseError::ok;
}

}  // namespace paceline::wire
