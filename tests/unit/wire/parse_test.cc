// One case per reason for which a packet is refused, each made from a good packet by one change.
#include "dataplane/wire/packet/parse.h"

#include <catch2/catch.hpp>
#include <functional>
#include <set>

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/extensions/control.h"
#include "tests/unit/wire/wire_fixture.h"

namespace paceline::wire {
namespace {

using test::Buffer;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kIp = kEthernetBytes;
constexpr std::size_t kUdp4 = kIp + kIpv4Bytes;
constexpr std::size_t kBth4 = kUdp4 + kUdpBytes;

enum class Family { v4, v6 };

HeaderTemplate template_for(Family family) {
  FlowAddressing flow = test::plain_flow();
  if (family == Family::v6) {
    flow.source = *ip_address_from_text("fd00::1");
    flow.destination = *ip_address_from_text("fd00::2");
  }
  return make_header_template(flow);
}

Bytes write_only_frame(Family family = Family::v4, std::uint32_t payload = 61) {
  Buffer out;
  const HeaderTemplate header = template_for(family);
  TransportFields f;
  f.opcode = Opcode::rc_write_only;
  f.payload_bytes = payload;
  const Reth reth{1, 2, 61};
  const std::size_t n = build_data(header, out, f, &reth);
  return test::frame_of(std::span(out).first(n), header.l3_offset, payload + pad_bytes(payload));
}

Bytes ack_frame(Aeth aeth = Aeth::ack(1)) {
  Buffer out;
  const HeaderTemplate header = template_for(Family::v4);
  const std::size_t n = build_acknowledge(header, out, 5, Psn(6), aeth);
  return test::frame_of(std::span(out).first(n), header.l3_offset);
}

Bytes grant_frame() {
  Buffer out;
  const HeaderTemplate header = template_for(Family::v4);
  const std::size_t n = build_control(header, out, Psn(1), GrantMessage{});
  return test::frame_of(std::span(out).first(n), header.l3_offset);
}

void fix_ip_checksum(Bytes& frame, std::size_t ip = kIp) {
  store_be16(frame.data() + ip + 10, 0);
  store_be16(frame.data() + ip + 10,
             static_cast<std::uint16_t>(~fold_sum(ipv4_header_sum(frame.data() + ip))));
}

void fix_icrc(Bytes& frame, std::size_t ip = kIp) {
  const std::size_t end = frame.size() - kIcrcBytes;
  store_le32(frame.data() + end, icrc_of_frame(frame, ip, end));
}

// Changes lengths of IPv4 and UDP by `delta` and mends the checksum.
void change_length(Bytes& frame, int delta) {
  for (const std::size_t at : {kIp + 2, kUdp4 + 4}) {
    store_be16(frame.data() + at, static_cast<std::uint16_t>(load_be16(frame.data() + at) + delta));
  }
  fix_ip_checksum(frame);
}

ParseError verdict(const Bytes& frame) {
  ParsedPacket p;
  return parse_frame(frame, p);
}

ParseError after(Bytes frame, const std::function<void(Bytes&)>& change) {
  REQUIRE(verdict(frame) == ParseError::ok);
  change(frame);
  return verdict(frame);
}

void set(Bytes& frame, std::size_t at, unsigned value) {
  frame.at(at) = static_cast<std::byte>(value);
}

}  // namespace

TEST_CASE("parse: too short at every layer") {
  ParsedPacket p;
  CHECK(parse_frame({}, p) == ParseError::too_short);
  const Bytes frame = write_only_frame();
  for (std::size_t n = 0; n < kBth4 + kBthBytes; ++n) {
    CHECK(parse_frame(std::span(frame).first(n), p) == ParseError::too_short);
  }
  const Bytes v6 = write_only_frame(Family::v6);
  for (std::size_t n = 0; n < kIp + kIpv6Bytes + kUdpBytes + kBthBytes; ++n) {
    CHECK(parse_frame(std::span(v6).first(n), p) == ParseError::too_short);
  }
  // The bytes are there, but IP and UDP say that they do not belong to the datagram.
  CHECK(after(ack_frame(), [](Bytes& f) { change_length(f, -8); }) == ParseError::too_short);
}

TEST_CASE("parse: link layer") {
  CHECK(after(write_only_frame(), [](Bytes& f) { store_be16(f.data() + 12, 0x0806); }) ==
        ParseError::not_ip);
  CHECK(after(write_only_frame(), [](Bytes& f) { store_be16(f.data() + 12, 0x8915); }) ==
        ParseError::not_ip);
  CHECK(after(write_only_frame(), [](Bytes& f) { store_be16(f.data() + 12, 0x88A8); }) ==
        ParseError::vlan_too_deep);
  const auto tag = [](Bytes& f) {
    f.insert(f.begin() + 12, {std::byte{0x81}, std::byte{0}, std::byte{0x60}, std::byte{0x64}});
  };
  Bytes tagged = write_only_frame();
  tag(tagged);
  ParsedPacket p;
  REQUIRE(parse_frame(tagged, p) == ParseError::ok);
  CHECK(p.has_vlan);
  CHECK(p.vlan_tci == 0x6064);
  CHECK(p.l3_offset == 18);
  CHECK(after(tagged, tag) == ParseError::vlan_too_deep);
  CHECK(parse_frame(std::span(tagged).first(17), p) == ParseError::too_short);
}

TEST_CASE("parse: IPv4") {
  const auto with_checksum = [](const std::function<void(Bytes&)>& change) {
    return after(write_only_frame(), [&change](Bytes& f) {
      change(f);
      fix_ip_checksum(f);
    });
  };
  CHECK(with_checksum([](Bytes& f) { set(f, kIp, 0x55); }) == ParseError::ip_version);
  CHECK(with_checksum([](Bytes& f) { set(f, kIp, 0x46); }) == ParseError::ip_options);
  CHECK(with_checksum([](Bytes& f) { set(f, kIp, 0x44); }) == ParseError::ip_length);
  CHECK(with_checksum([](Bytes& f) { set(f, kIp + 6, 0x20); }) == ParseError::fragment);
  CHECK(with_checksum([](Bytes& f) { set(f, kIp + 7, 0x01); }) == ParseError::fragment);
  CHECK(with_checksum([](Bytes& f) { set(f, kIp + 9, 6); }) == ParseError::not_udp);
  CHECK(with_checksum([](Bytes& f) { store_be16(f.data() + kIp + 2, 19); }) ==
        ParseError::ip_length);
  CHECK(with_checksum([](Bytes& f) { store_be16(f.data() + kIp + 2, 1400); }) ==
        ParseError::ip_length);
  CHECK(after(write_only_frame(), [](Bytes& f) { set(f, kIp + 8, 63); }) ==
        ParseError::ip_checksum);
  // A NIC that verified the checksum saves us from doing it again.
  Bytes frame = write_only_frame();
  set(frame, kIp + 8, 63);
  ParsedPacket p;
  CHECK(parse_frame(frame, {false, true}, p) == ParseError::ok);
  CHECK(p.ttl == 63);
}

TEST_CASE("parse: IPv6") {
  const auto changed = [](const std::function<void(Bytes&)>& change) {
    return after(write_only_frame(Family::v6), change);
  };
  CHECK(changed([](Bytes& f) { set(f, kIp, 0x45); }) == ParseError::ip_version);
  CHECK(changed([](Bytes& f) { set(f, kIp + 6, 44); }) == ParseError::fragment);
  CHECK(changed([](Bytes& f) { set(f, kIp + 6, 0); }) == ParseError::ip_options);
  CHECK(changed([](Bytes& f) { set(f, kIp + 6, 43); }) == ParseError::ip_options);
  CHECK(changed([](Bytes& f) { set(f, kIp + 6, 60); }) == ParseError::ip_options);
  CHECK(changed([](Bytes& f) { set(f, kIp + 6, 6); }) == ParseError::not_udp);
  CHECK(changed([](Bytes& f) { store_be16(f.data() + kIp + 4, 1400); }) == ParseError::ip_length);
  CHECK(changed([](Bytes& f) {
          const auto mapped = IpAddress::v4(0x0A000001);
          std::copy(mapped.bytes.begin(), mapped.bytes.end(), f.begin() + kIp + 8);
        }) == ParseError::mapped_address);
  CHECK(changed([](Bytes& f) {
          const auto mapped = IpAddress::v4(0x0A000001);
          std::copy(mapped.bytes.begin(), mapped.bytes.end(), f.begin() + kIp + 24);
        }) == ParseError::mapped_address);
}

TEST_CASE("parse: UDP") {
  CHECK(after(write_only_frame(), [](Bytes& f) { store_be16(f.data() + kUdp4 + 2, 4790); }) ==
        ParseError::udp_port);
  CHECK(after(write_only_frame(), [](Bytes& f) {
          store_be16(f.data() + kUdp4 + 4,
                     static_cast<std::uint16_t>(load_be16(f.data() + kUdp4 + 4) - 4));
        }) == ParseError::udp_length);
  // A checksum is not verified, only reported.
  Bytes frame = write_only_frame();
  store_be16(frame.data() + kUdp4 + 6, 0x1234);
  ParsedPacket p;
  REQUIRE(parse_frame(frame, p) == ParseError::ok);
  CHECK(p.udp_checksum == 0x1234);
}

TEST_CASE("parse: transport header") {
  CHECK(after(write_only_frame(), [](Bytes& f) { set(f, kBth4 + 1, 0x71); }) ==
        ParseError::transport_version);
  for (const unsigned opcode : {0x15U, 0x1CU, 0x1DU, 0x2CU, 0x40U, 0x60U, 0x80U, 0xB5U, 0xC6U}) {
    INFO(opcode);
    CHECK(after(write_only_frame(), [opcode](Bytes& f) { set(f, kBth4, opcode); }) ==
          ParseError::unknown_opcode);
  }
  CHECK(after(write_only_frame(), [](Bytes& f) {
          store_be24(f.data() + kBth4 + 5, kControlQpn);
        }) == ParseError::control_destination);
  CHECK(after(grant_frame(), [](Bytes& f) { store_be24(f.data() + kBth4 + 5, 2); }) ==
        ParseError::control_destination);
}

TEST_CASE("parse: extension headers, payload and pad") {
  // An ACK turned into an atomic acknowledgement lacks the second extension header.
  CHECK(after(ack_frame(), [](Bytes& f) { set(f, kBth4, 0x12); }) ==
        ParseError::truncated_extension);
  CHECK(after(ack_frame(), [](Bytes& f) { set(f, kBth4, 0x81); }) ==
        ParseError::truncated_extension);
  // Four bytes more than an ACK has.
  CHECK(after(ack_frame(), [](Bytes& f) {
          f.resize(f.size() + 4);
          change_length(f, 4);
          fix_icrc(f);
        }) == ParseError::unexpected_payload);
  // An ACK with a pad count.
  CHECK(after(ack_frame(), [](Bytes& f) { set(f, kBth4 + 1, 0x50); }) == ParseError::bad_pad);
  // 61 bytes and 3 of pad, less one.
  CHECK(after(write_only_frame(), [](Bytes& f) {
          f.pop_back();
          change_length(f, -1);
          fix_icrc(f);
        }) == ParseError::bad_pad);
  // A pad longer than what there is.
  CHECK(after(write_only_frame(Family::v4, 0), [](Bytes& f) { set(f, kBth4 + 1, 0x50); }) ==
        ParseError::bad_pad);
  CHECK(after(grant_frame(), [](Bytes& f) { set(f, kBth4 + 1, 0x50); }) == ParseError::bad_pad);
}

TEST_CASE("parse: syndromes") {
  CHECK(verdict(ack_frame(Aeth::rnr_nak(1, 14))) == ParseError::ok);
  CHECK(verdict(ack_frame(Aeth::nak(1, NakCode::remote_operational_error))) == ParseError::ok);
  for (const unsigned syndrome : {0x40U, 0x5FU, 0x65U, 0x7FU, 0x80U, 0x9FU, 0xE0U}) {
    INFO(syndrome);
    CHECK(verdict(ack_frame({static_cast<std::uint8_t>(syndrome), 1})) == ParseError::bad_aeth);
  }
  // A READ response cannot be a NAK.
  Buffer out;
  const HeaderTemplate header = template_for(Family::v4);
  TransportFields f;
  f.opcode = Opcode::rc_read_response_only;
  f.payload_bytes = 8;
  std::size_t n = build_read_response(header, out, f, Aeth::nak(1, NakCode::invalid_request));
  ParsedPacket p;
  CHECK(parse_headers(std::span(out).first(n), 8, p) == ParseError::bad_aeth);
  n = build_read_response(header, out, f, Aeth::ack(1));
  CHECK(parse_headers(std::span(out).first(n), 8, p) == ParseError::ok);
}

TEST_CASE("parse: ICRC") {
  CHECK(after(write_only_frame(), [](Bytes& f) { f.back() ^= std::byte{1}; }) ==
        ParseError::bad_icrc);
  CHECK(after(write_only_frame(), [](Bytes& f) { f[f.size() - 9] ^= std::byte{1}; }) ==
        ParseError::bad_icrc);
  Bytes frame = write_only_frame();
  frame.back() ^= std::byte{1};
  ParsedPacket p;
  CHECK(parse_frame(frame, {true, false}, p) == ParseError::ok);
}

TEST_CASE("parse: what follows the datagram is not looked at") {
  Bytes frame = ack_frame();
  frame.resize(frame.size() + 6, std::byte{0xAA});  // Ethernet padding, frame check sequence
  ParsedPacket p;
  REQUIRE(parse_frame(frame, p) == ParseError::ok);
  CHECK(p.header_bytes == kBth4 + kBthBytes + Aeth::kBytes);
  CHECK(p.payload_bytes == 0);
}

TEST_CASE("parse: headers alone must be exactly the headers") {
  const Bytes frame = write_only_frame();
  ParsedPacket p;
  REQUIRE(parse_frame(frame, p) == ParseError::ok);
  const std::size_t n = p.header_bytes;
  const auto all = std::span<const std::byte>(frame);
  CHECK(parse_headers(all.first(n), 64, p) == ParseError::ok);
  CHECK(p.payload_bytes == 61);
  CHECK(parse_headers(all.first(n), 60, p) == ParseError::ip_length);
  CHECK(parse_headers(all.first(n), 68, p) == ParseError::ip_length);
  // Sums up, but some payload lies among the headers, or some header among the payload.
  CHECK(parse_headers(all.first(n + 4), 60, p) == ParseError::header_length);
  CHECK(parse_headers(all.first(n - 4), 68, p) == ParseError::truncated_extension);
  const Bytes grant = grant_frame();
  const auto body = std::span<const std::byte>(grant).first(grant.size() - kIcrcBytes);
  CHECK(parse_headers(body, 0, p) == ParseError::ok);
  CHECK(control_body(body, p).size() == kGrantBytes);
  CHECK(parse_headers(body.first(body.size() - 4), 4, p) == ParseError::unexpected_payload);
}

TEST_CASE("parse: stale extension headers do not survive into the next packet") {
  ParsedPacket p;
  REQUIRE(parse_frame(write_only_frame(), p) == ParseError::ok);
  CHECK(p.ext.reth.rkey == 2);
  REQUIRE(parse_frame(ack_frame(), p) == ParseError::ok);
  CHECK(p.ext.reth == Reth{});
  CHECK(p.ext.aeth == Aeth::ack(1));
}

TEST_CASE("parse: reasons have names and counters") {
  std::set<std::string_view> names;
  ParseCounters counters;
  for (std::size_t i = 0; i < kParseErrors; ++i) {
    const auto e = static_cast<ParseError>(i);
    CHECK(names.insert(parse_error_name(e)).second);
    counters.record(e);
  }
  counters.record(ParseError::udp_port);
  CHECK(counters.of(ParseError::udp_port) == 2);
  CHECK(counters.refused() == kParseErrors);
  CHECK(parse_error_name(ParseError::udp_port) == "udp_port");
  CHECK(parse_error_name(ParseError::control_field) == "control_field");
}

}  // namespace paceline::wire
