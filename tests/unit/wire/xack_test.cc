#include "dataplane/wire/xack.h"

#include <array>
#include <catch2/catch.hpp>

#include "dataplane/base/random.h"

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
  // One that is cut short, or goes to the control queue pair, is no packet at all.
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
    CHECK(out[h.header_bytes + 1] == static_cast<std::byte>(flags));
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

}  // namespace paceline::wire
