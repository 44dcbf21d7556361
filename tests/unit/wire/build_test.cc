#include "dataplane/wire/packet/build.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/unit/wire/wire_fixture.h"

namespace paceline::wire {
namespace {

using test::Buffer;

// All opcodes that build_packet takes.
std::vector<Opcode> data_opcodes() {
  std::vector<Opcode> all;
  for (unsigned i = 0; i < 256; ++i) {
    const auto& row = properties(static_cast<Opcode>(i));
    if (row.known() && !row.is_control()) all.push_back(static_cast<Opcode>(i));
  }
  return all;
}

std::vector<std::byte> headers_of(const Buffer& out, std::size_t n) {
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n)};
}

}  // namespace

// The headers of annex A14, by hand: Ethernet, IPv4, UDP, BTH, XRCETH, RETH, ImmDt.
TEST_CASE("build: a WRITE of XRC with immediate, byte for byte") {
  constexpr unsigned char kExpected[] = {
      0x02, 0,    0,    0,    0,    2,    0x02, 0,    0,    0,    0,    1,    0x08, 0x00,  //
      0x45, 0x6A, 0x00, 0x48, 0,    0,    0x40, 0,    0x40, 0x11, 0x26, 0x39,              //
      10,   0,    0,    1,    10,   0,    0,    2,                                         //
      0xC0, 0x01, 0x12, 0xB7, 0x00, 0x34, 0,    0,                                         //
      0xAB, 0xF0, 0xFF, 0xFF, 0x00, 0x12, 0x34, 0x56, 0x80, 0xAB, 0xCD, 0xEF,              //
      0x00, 0x65, 0x43, 0x21,                                                              //
      0x01, 0x02, 0x03, 0x04, 0x05, 0x06, 0x07, 0x08, 0xAA, 0xBB, 0xCC, 0xDD, 0,    0,     //
      0,    1,                                                                             //
      0xCA, 0xFE, 0xF0, 0x0D};
  FlowAddressing flow = test::plain_flow();
  flow.source_mac = MacAddress{{std::byte{2}, {}, {}, {}, {}, std::byte{1}}};
  flow.destination_mac = MacAddress{{std::byte{2}, {}, {}, {}, {}, std::byte{2}}};
  flow.udp_source_port = 0xC001;
  HeaderTemplate header = make_header_template(flow);
  use_xrc(header, true);
  set_xrc_srq(header, 0x65'4321);
  TransportFields f;
  f.opcode = Opcode::rc_write_only_imm;
  f.dest_qpn = 0x12'3456;
  f.psn = Psn(0xAB'CDEF);
  f.payload_bytes = 1;
  f.ack_request = f.solicited = true;
  const Reth reth{0x0102'0304'0506'0708, 0xAABB'CCDD, 1};
  Buffer out;
  const std::size_t n = build_data(header, out, f, &reth, 0xCAFE'F00D);
  REQUIRE(n == sizeof kExpected);
  for (std::size_t i = 0; i < n; ++i) {
    INFO("byte " << i);
    CHECK(std::to_integer<unsigned>(out[i]) == kExpected[i]);
  }
}

TEST_CASE(
    "build: by a template of XRC, RC opcodes are those of XRC, with the number where it goes") {
  const std::uint64_t seed = 47;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 2'000; ++i) {
    const FlowAddressing flow = test::random_flow(random);
    TransportFields f;
    f.opcode = static_cast<Opcode>(random.below(0x18));
    const OpcodeProperties& row = properties(f.opcode);
    if (!row.known()) continue;
    INFO("iteration " << i << ", " << opcode_name(f.opcode));
    f.dest_qpn = 77;
    f.psn = Psn(static_cast<std::uint32_t>(random.next()));
    f.payload_bytes = row.carries_payload() ? static_cast<std::uint32_t>(random.below(4097)) : 0;
    const OpcodeProperties& xrc = properties(xrc_opcode(f.opcode));
    const Extensions ext = test::random_extensions(random, xrc);
    HeaderTemplate header = make_header_template(flow);
    Buffer plain;
    TransportFields named = f;
    named.opcode = xrc_opcode(f.opcode);
    const std::size_t n = build_packet(header, plain, named, ext);
    use_xrc(header, row.is_request());
    if (row.is_request()) set_xrc_srq(header, ext.xrc_srq);
    Buffer out;
    REQUIRE(build_packet(header, out, f, ext) == n);
    CHECK(headers_of(out, n) == headers_of(plain, n));
    CHECK(header.bth_offset() + kBthBytes + xrc.extension_bytes == n);
  }
}

TEST_CASE("build: what is built parses to what was asked for, in both forms") {
  const std::uint64_t seed = 31;
  INFO("seed " << seed);
  Random random(seed);
  const auto opcodes = data_opcodes();
  for (int i = 0; i < 20'000; ++i) {
    const FlowAddressing flow = test::random_flow(random);
    TransportFields f;
    f.opcode = opcodes[random.below(opcodes.size())];
    const OpcodeProperties& row = properties(f.opcode);
    f.dest_qpn = static_cast<std::uint32_t>(random.below(kControlQpn));
    f.psn = Psn(static_cast<std::uint32_t>(random.next()));
    f.payload_bytes = row.carries_payload() ? static_cast<std::uint32_t>(random.below(4097)) : 0;
    f.ack_request = random.below(2) == 0;
    f.solicited = random.below(2) == 0;
    f.fecn = random.below(2) == 0;
    f.becn = random.below(2) == 0;
    const Extensions ext = test::random_extensions(random, row);

    Buffer out;
    out.fill(std::byte{0xEE});
    const HeaderTemplate header = make_header_template(flow);
    const std::size_t n = build_packet(header, out, f, ext);
    const std::uint32_t padded = f.payload_bytes + pad_bytes(f.payload_bytes);
    INFO("iteration " << i << ", " << opcode_name(f.opcode));
    ParsedPacket p;
    const ParseError e = parse_headers(std::span(out).first(n), padded, p);
    INFO(parse_error_name(e));
    REQUIRE(e == ParseError::ok);
    const Bth expected{f.opcode,   f.solicited,   flow.migrated, pad_bytes(f.payload_bytes),
                       0,          flow.pkey,     f.fecn,        f.becn,
                       f.dest_qpn, f.ack_request, f.psn};
    REQUIRE(p.bth() == expected);
    REQUIRE(p.ext == ext);
    REQUIRE(p.payload_bytes == f.payload_bytes);
    REQUIRE(p.header_bytes == n);
    REQUIRE(p.source == flow.source);
    REQUIRE(p.destination == flow.destination);
    REQUIRE(p.source_mac == flow.source_mac);
    REQUIRE(p.destination_mac == flow.destination_mac);
    REQUIRE(p.udp_source_port == flow.udp_source_port);
    REQUIRE(p.udp_checksum == 0);
    REQUIRE(p.dscp == flow.dscp);
    REQUIRE(p.ecn == flow.ecn);
    REQUIRE(p.ttl == flow.ttl);
    REQUIRE(p.flow_label == flow.flow_label);
    REQUIRE(p.ip_identification == flow.ip_identification);
    REQUIRE(p.has_vlan == flow.vlan_tci.has_value());
    if (flow.vlan_tci) REQUIRE(p.vlan_tci == *flow.vlan_tci);
    REQUIRE(p.properties == row);
    REQUIRE(p.icrc == 0);

    const auto frame = test::frame_of(std::span(out).first(n), p.l3_offset, padded);
    ParsedPacket from_frame;
    REQUIRE(parse_frame(frame, from_frame) == ParseError::ok);
    REQUIRE(from_frame.bth() == expected);
    REQUIRE(from_frame.ext == ext);
    REQUIRE(from_frame.payload_bytes == f.payload_bytes);
  }
}

TEST_CASE("build: the special builders write what the general one writes") {
  const HeaderTemplate header = make_header_template(test::plain_flow());
  Buffer special;
  Buffer general;
  TransportFields f;
  f.dest_qpn = 0x11;
  f.psn = Psn(0x1234);
  Extensions ext;
  ext.reth = {0x1000, 0x77, 4096};
  ext.aeth = Aeth::nak(9, NakCode::psn_sequence_error);
  ext.atomic = {0x2000, 0x78, 5, 6};
  ext.atomic_original = 42;
  ext.immediate = ext.invalidate_rkey = 0xCAFE;
  ext.deth = {0x11111111, 0x22};
  const auto same = [&](std::size_t n) {
    INFO(opcode_name(f.opcode));
    REQUIRE(build_packet(header, general, f, ext) == n);
    CHECK(headers_of(special, n) == headers_of(general, n));
  };

  for (unsigned i = 0; i < 0x40; ++i) {
    f.opcode = static_cast<Opcode>(i);
    const auto operation = properties(f.opcode).operation;
    if (operation != Operation::send && operation != Operation::write) continue;
    for (const std::uint32_t payload : {0U, 1U, 4096U}) {
      f.payload_bytes = payload;
      same(build_data(header, special, f, &ext.reth, 0xCAFE));
    }
  }
  f.payload_bytes = 100;
  f.opcode = Opcode::ud_send_only;
  same(build_datagram(header, special, f, ext.deth));
  f.opcode = Opcode::ud_send_only_imm;
  same(build_datagram(header, special, f, ext.deth, &ext.immediate));
  for (const Opcode op : {Opcode::rc_read_response_first, Opcode::rc_read_response_middle,
                          Opcode::rc_read_response_last, Opcode::rc_read_response_only}) {
    f.opcode = op;
    same(build_read_response(header, special, f, ext.aeth));
  }
  f.payload_bytes = 0;
  f.opcode = Opcode::rc_acknowledge;
  same(build_acknowledge(header, special, f.dest_qpn, f.psn, ext.aeth));
  f.becn = true;
  same(build_acknowledge(header, special, f.dest_qpn, f.psn, ext.aeth, true));
  f.becn = false;
  f.opcode = Opcode::rc_atomic_acknowledge;
  same(build_atomic_acknowledge(header, special, f.dest_qpn, f.psn, ext.aeth, 42));
  f.ack_request = true;
  f.opcode = Opcode::rc_read_request;
  same(build_read_request(header, special, f.dest_qpn, f.psn, ext.reth));
  for (const Opcode op : {Opcode::rc_compare_swap, Opcode::rc_fetch_add}) {
    f.opcode = op;
    same(build_atomic(header, special, op, f.dest_qpn, f.psn, ext.atomic));
  }
}

TEST_CASE("build: a CNP's bytes") {
  // The transport part of the example in the vendor article "RoCEv2 CNP Packet Format Example".
  constexpr unsigned kExpected[28] = {0x81, 0x00, 0xFF, 0xFF, 0x40, 0x00, 0x00, 0xD2};
  const HeaderTemplate header = make_header_template(test::plain_flow());
  Buffer out;
  out.fill(std::byte{0xEE});
  const std::size_t n = build_cnp(header, out, 0xD2);
  REQUIRE(n == 14 + 20 + 8 + 12 + 16);
  for (std::size_t i = 0; i < 28; ++i) {
    INFO(i);
    CHECK(static_cast<unsigned>(out[42 + i]) == kExpected[i]);
  }
  ParsedPacket p;
  REQUIRE(parse_headers(std::span(out).first(n), 0, p) == ParseError::ok);
  CHECK(p.becn);
  CHECK_FALSE(p.migrated);
  CHECK(p.payload_bytes == 0);
}

TEST_CASE("build: an acknowledgement's bytes, IPv4") {
  FlowAddressing flow = test::plain_flow();
  flow.dscp = 56;
  flow.ecn = Ecn::not_ect;
  Buffer out;
  const std::size_t n =
      build_acknowledge(make_header_template(flow), out, 0x42, Psn(7), Aeth::ack(3));
  const unsigned expected[] = {
      0x02, 0,    0,    0,    0,    2,    0x02, 0,    0,    0,    0,    1,
      0x08, 0x00,                                                              // Ethernet
      0x45, 0xE0, 0x00, 0x30, 0x00, 0x00, 0x40, 0x00, 0x40, 0x11, 0x25, 0xDB,  // IPv4
      10,   0,    0,    1,    10,   0,    0,    2,                             //
      0xC0, 0x00, 0x12, 0xB7, 0x00, 0x1C, 0x00, 0x00,                          // UDP
      0x11, 0x40, 0xFF, 0xFF, 0x00, 0x00, 0x00, 0x42, 0x00, 0x00, 0x00, 0x07,  // BTH
      0x1F, 0x00, 0x00, 0x03};                                                 // AETH
  REQUIRE(n == std::size(expected));
  for (std::size_t i = 0; i < n; ++i) {
    INFO(i);
    CHECK(static_cast<unsigned>(out[i]) == expected[i]);
  }
  CHECK(ipv4_checksum_ok(out.data() + 14));
}

TEST_CASE("build: mixed families are IPv6, IPv4 needs both") {
  FlowAddressing flow = test::plain_flow();
  CHECK_FALSE(make_header_template(flow).ipv6);
  flow.source = *ip_address_from_text("fd00::1");
  const HeaderTemplate header = make_header_template(flow);
  CHECK(header.ipv6);
  CHECK(header.bth_offset() == 14 + 40 + 8);
}

TEST_CASE("build: another source port changes the UDP header only") {
  HeaderTemplate header = make_header_template(test::plain_flow());
  Buffer before;
  Buffer after;
  const std::size_t n = build_cnp(header, before, 1);
  set_source_port(header, 0xD123);
  REQUIRE(build_cnp(header, after, 1) == n);
  CHECK(load_be16(after.data() + 34) == 0xD123);
  store_be16(after.data() + 34, 0xC000);
  CHECK(headers_of(before, n) == headers_of(after, n));
}

}  // namespace paceline::wire
