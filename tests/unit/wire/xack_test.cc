#include "dataplane/wire/extensions/xack.h"

#include <array>
#include <catch2/catch.hpp>
#include <span>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::wire {
namespace {

HeaderTemplate header(bool ipv6) {
  FlowAddressing flow;
  flow.source = IpAddress::v4(0x0A000001);
  flow.destination = IpAddress::v4(0x0A000002);
  if (ipv6) {
    flow.source = IpAddress{};
    flow.destination = IpAddress{};
    flow.source.bytes[0] = flow.destination.bytes[0] = std::byte{0xFD};
    flow.source.bytes[15] = std::byte{1};
    flow.destination.bytes[15] = std::byte{2};
  }
  flow.ecn = Ecn::not_ect;
  return make_header_template(flow);
}

Xack sample(Random& rng) {
  Xack x;
  x.aeth = Aeth::ack(static_cast<std::uint32_t>(rng.next()) & 0xFF'FFFFU,
                     static_cast<std::uint8_t>(rng.below(32)));
  x.trigger = Psn(static_cast<std::uint32_t>(rng.next()));
  x.duplicate = rng.below(2) != 0;
  x.marked = rng.below(2) != 0;
  x.trimmed = rng.below(2) != 0;
  x.trigger_port = static_cast<std::uint16_t>(rng.next());
  x.marked_port = static_cast<std::uint16_t>(rng.next());
  x.hold_ns = static_cast<std::uint16_t>(rng.next());
  x.bitmap_offset = static_cast<std::uint16_t>(rng.next());
  x.marked_bytes = static_cast<std::uint32_t>(rng.next());
  x.arrival_ns = static_cast<std::uint32_t>(rng.next());
  x.bitmap = {rng.next(), rng.next()};
  return x;
}

}  // namespace

TEST_CASE("xack: what is built is what is parsed, over IPv4 and IPv6") {
  Random rng(7);
  for (int round = 0; round < 200; ++round) {
    const HeaderTemplate h = header(round % 2 == 1);
    const Xack sent = sample(rng);
    const Psn expected(static_cast<std::uint32_t>(rng.next()));
    std::array<std::byte, kHeaderBufferBytes> out{};
    const std::size_t bytes = build_xack(h, out, 0x1234, expected, sent);
    CHECK(bytes == h.header_bytes + kXackBytes);
    ParsedPacket parsed;
    REQUIRE(parse_headers({out.data(), bytes}, 0, parsed) == ParseError::ok);
    CHECK(parsed.opcode == Opcode::xack);
    CHECK(parsed.properties.operation == Operation::xack);
    CHECK(parsed.dest_qpn == 0x1234);
    CHECK(parsed.psn == expected);
    Xack got;
    REQUIRE(parse_xack(xack_body({out.data(), bytes}, parsed), got) == ParseError::ok);
    CHECK(got.aeth == sent.aeth);
    CHECK(got.trigger == sent.trigger);
    CHECK(got.duplicate == sent.duplicate);
    CHECK(got.marked == sent.marked);
    CHECK(got.trimmed == sent.trimmed);
    CHECK(got.trigger_port == sent.trigger_port);
    CHECK(got.marked_port == sent.marked_port);
    CHECK(got.hold_ns == sent.hold_ns);
    CHECK(got.bitmap_offset == sent.bitmap_offset);
    CHECK(got.marked_bytes == sent.marked_bytes);
    CHECK(got.arrival_ns == sent.arrival_ns);
    CHECK(got.bitmap == sent.bitmap);
  }
}

TEST_CASE("xack: refused with a reason") {
  const HeaderTemplate h = header(false);
  std::array<std::byte, kHeaderBufferBytes> out{};
  const std::size_t bytes = build_xack(h, out, 17, Psn(5), Xack{});
  ParsedPacket parsed;
  REQUIRE(parse_headers({out.data(), bytes}, 0, parsed) == ParseError::ok);
  const std::span<std::byte> body{out.data() + h.header_bytes, kXackBytes};
  Xack got;
  CHECK(parse_xack({}, got) == ParseError::control_length);
  CHECK(parse_xack(body.first(kXackBytes - 4), got) == ParseError::control_length);
  body[0] = std::byte{2};
  CHECK(parse_xack(body, got) == ParseError::control_version);
  body[0] = std::byte{kXackVersion};
  body[4] = std::byte{0x80};
  CHECK(parse_xack(body, got) == ParseError::bad_aeth);
  // One that is cut short, or goes to the control queue pair, is not a packet at all.
  CHECK(parse_headers({out.data(), bytes - 4}, 0, parsed) != ParseError::ok);
  const std::size_t control = build_xack(h, out, kControlQpn, Psn(5), Xack{});
  CHECK(parse_headers({out.data(), control}, 0, parsed) == ParseError::control_destination);
}

TEST_CASE("xack: the bits of its flags") {
  const HeaderTemplate h = header(false);
  std::array<std::byte, kHeaderBufferBytes> out{};
  for (unsigned flags = 0; flags < 8; ++flags) {
    Xack x;
    x.duplicate = (flags & 1U) != 0;
    x.marked = (flags & 2U) != 0;
    x.trimmed = (flags & 4U) != 0;
    build_xack(h, out, 17, Psn(5), x);
    CHECK(out[h.header_bytes + 1] ==
          static_cast<std::byte>((flags & 3U) | (flags & 4U)
                                                    << 1));  // bit 2 says that records follow
  }
}

TEST_CASE("xack: bits of the bitmap are numbered from the lowest of the first word") {
  Xack x;
  x.set_bit(0);
  x.set_bit(64);
  x.set_bit(127);
  CHECK(x.bitmap[0] == 1);
  CHECK(x.bitmap[1] == (1ULL << 63 | 1));
  CHECK(x.bit(127));
  CHECK_FALSE(x.bit(1));
}

TEST_CASE("xack: records of telemetry come back as they were, in the longest packet too") {
  Random rng(8);
  for (std::size_t count = 1; count <= kIntHops; ++count) {
    HeaderTemplate h = header(count % 2 == 1);
    Xack sent = sample(rng);
    std::array<std::byte, kIntHops * kIntRecordBytes> records{};
    std::vector<IntHop> hops;
    for (std::size_t i = 0; i < count; ++i) {
      IntHop hop;
      hop.rate_mbps = static_cast<std::uint32_t>(rng.below(1U << 24));
      hop.queue_bytes = static_cast<std::uint32_t>(rng.below(1U << 24)) * 16;
      hop.sent_bytes = static_cast<std::uint32_t>(rng.below(1U << 24)) * 64;
      hop.time_ns = static_cast<std::uint32_t>(rng.below(1U << 24));
      store_int_record(records.data() + i * kIntRecordBytes, hop);
      hops.push_back(hop);
    }
    sent.records = std::span(records).first(count * kIntRecordBytes);
    sent.path = 0x1ABC;
    std::array<std::byte, kHeaderBufferBytes + kXackSpillBytes> out{};
    const std::size_t bytes =
        build_xack(h, HeaderBuffer{out.data(), kHeaderBufferBytes}, 0x1234, Psn(7), sent);
    CHECK(bytes == h.header_bytes + kXackBytes + 4 + 12 * count);
    ParsedPacket parsed;
    REQUIRE(parse_headers({out.data(), bytes}, 0, parsed) == ParseError::ok);
    Xack got;
    REQUIRE(parse_xack(xack_body({out.data(), bytes}, parsed), got) == ParseError::ok);
    CHECK(got.bitmap == sent.bitmap);
    CHECK(got.path == 0x1ABC);
    REQUIRE(got.records.size() == count * kIntRecordBytes);
    for (std::size_t i = 0; i < count; ++i) {
      CHECK(load_int_record(got.records.data() + i * kIntRecordBytes) == hops[i]);
    }
  }
}

TEST_CASE("xack: the bytes of a record are those of the document") {
  std::array<std::byte, kIntRecordBytes> bytes{};
  store_int_record(bytes.data(), {100'000, 0x12345 * 16, 0xABCDEF * 64 + 63, 0x00654321});
  const std::array<unsigned, kIntRecordBytes> expected{0x01, 0x86, 0xA0, 0x01, 0x23, 0x45,
                                                       0xAB, 0xCD, 0xEF, 0x65, 0x43, 0x21};
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    CHECK(std::to_integer<unsigned>(bytes[i]) == expected[i]);
  }
  // What does not fit: the most there is; counters wrap.
  store_int_record(bytes.data(), {0xFFFF'FFFF, 0xFFFF'FFFF, 1U << 30, 1U << 24});
  CHECK(load_int_record(bytes.data()) == IntHop{0xFF'FFFF, (1U << 28) - 16, 0, 0});
}

TEST_CASE("xack: hostile counts of records are refused") {
  std::array<std::byte, kHeaderBufferBytes + kXackSpillBytes> out{};
  std::array<std::byte, 2 * kIntRecordBytes> records{};
  Xack x;
  x.records = records;
  const HeaderTemplate h = header(false);
  const std::size_t bytes =
      build_xack(h, HeaderBuffer{out.data(), kHeaderBufferBytes}, 17, Psn(5), x);
  const std::span<std::byte> body{out.data() + h.header_bytes, bytes - h.header_bytes};
  Xack got;
  REQUIRE(parse_xack(body, got) == ParseError::ok);
  for (unsigned count = 0; count < 256; ++count) {
    body[kXackBytes] = static_cast<std::byte>(count);
    const ParseError error = parse_xack(body, got);
    CHECK(error == (count == 2                       ? ParseError::ok
                    : count == 0 || count > kIntHops ? ParseError::control_field
                                                     : ParseError::control_length));
  }
  body[kXackBytes] = std::byte{2};
  for (std::size_t size = 0; size < body.size(); ++size) {
    CHECK(parse_xack(body.first(size), got) == ParseError::control_length);
  }
  // Without the flag there must be nothing behind the bitmap.
  body[1] = std::byte{0};
  CHECK(parse_xack(body, got) == ParseError::control_length);
  CHECK(parse_xack(body.first(kXackBytes), got) == ParseError::ok);
  CHECK(got.records.empty());
}

}  // namespace paceline::wire
