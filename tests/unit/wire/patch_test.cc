#include "dataplane/wire/packet/patch.h"

#include <catch2/catch.hpp>

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/packet/parse.h"
#include "tests/unit/wire/wire_fixture.h"

namespace paceline::wire {
namespace {

using test::Buffer;

std::vector<std::byte> random_packet(Random& random, FlowAddressing* flow_out = nullptr) {
  const FlowAddressing flow = test::random_flow(random);
  if (flow_out != nullptr) *flow_out = flow;
  Buffer out;
  TransportFields f;
  f.opcode = Opcode::rc_send_only;
  f.dest_qpn = 3;
  const std::size_t n = build_data(make_header_template(flow), out, f);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n)};
}

ParsedPacket parsed(const std::vector<std::byte>& headers) {
  ParsedPacket p;
  REQUIRE(parse_headers(headers, 0, p) == ParseError::ok);  // verifies the IPv4 checksum
  return p;
}

}  // namespace

TEST_CASE("checksum: RFC 1624 update equals computing anew") {
  const std::uint64_t seed = 12;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 100'000; ++i) {
    std::array<std::byte, kIpv4Bytes> header;
    for (auto& b : header) b = static_cast<std::byte>(random.next());
    if (random.below(4) == 0) header.fill(random.below(2) == 0 ? std::byte{0xFF} : std::byte{0});
    // Every header begins with its version: the sum is never that of nothing but zeros, the one
    // case in which the two forms of zero would differ.
    header[0] = std::byte{0x45};
    store_be16(header.data() + 10, 0);
    store_be16(header.data() + 10,
               static_cast<std::uint16_t>(~fold_sum(ipv4_header_sum(header.data()))));
    REQUIRE(ipv4_checksum_ok(header.data()));
    const std::size_t at = 2 * random.below(5);
    const std::uint16_t old_word = load_be16(header.data() + at);
    auto new_word = static_cast<std::uint16_t>(random.below(3) == 0 ? 0 : random.next());
    if (at == 0) new_word = static_cast<std::uint16_t>(0x4500 | (new_word & 0xFF));
    store_be16(header.data() + at, new_word);
    store_be16(header.data() + 10,
               updated_checksum(load_be16(header.data() + 10), old_word, new_word));
    REQUIRE(ipv4_checksum_ok(header.data()));
  }
}

TEST_CASE("patch: any ECN code point to any other, checksum and ICRC stay right") {
  const std::uint64_t seed = 8;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 3000; ++i) {
    auto headers = random_packet(random);
    const ParsedPacket before = parsed(headers);
    REQUIRE(read_ecn(headers) == before.ecn);
    const auto ecn = static_cast<Ecn>(random.below(4));
    const std::uint32_t crc = icrc(headers, before.l3_offset);
    REQUIRE(patch_ecn(headers, ecn));
    const ParsedPacket now = parsed(headers);
    REQUIRE(now.ecn == ecn);
    REQUIRE(now.dscp == before.dscp);
    REQUIRE(now.flow_label == before.flow_label);
    REQUIRE(icrc(headers, now.l3_offset) == crc);
  }
}

TEST_CASE("patch: any DSCP to any other, ECN, checksum and ICRC stay right") {
  const std::uint64_t seed = 14;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 3000; ++i) {
    auto headers = random_packet(random);
    const ParsedPacket before = parsed(headers);
    const auto dscp = static_cast<std::uint8_t>(random.below(64));
    const std::uint32_t crc = icrc(headers, before.l3_offset);
    REQUIRE(patch_dscp(headers, dscp));
    const ParsedPacket now = parsed(headers);  // its IPv4 checksum was verified
    REQUIRE(now.dscp == dscp);
    REQUIRE(now.ecn == before.ecn);
    REQUIRE(now.flow_label == before.flow_label);
    REQUIRE(icrc(headers, now.l3_offset) == crc);
    REQUIRE(patch_dscp(headers, before.dscp));
    REQUIRE(parsed(headers).dscp == before.dscp);
  }
}

TEST_CASE("patch: marking respects transports that are not ECN-capable") {
  const std::uint64_t seed = 9;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 1000; ++i) {
    auto headers = random_packet(random);
    const auto original = headers;
    const Ecn before = parsed(headers).ecn;
    const bool marked = mark_ce(headers);
    REQUIRE(marked == (before != Ecn::not_ect));
    if (!marked) REQUIRE(headers == original);
    REQUIRE(parsed(headers).ecn == (marked ? Ecn::ce : Ecn::not_ect));
  }
}

TEST_CASE("patch: what is not IP, or not whole, is left alone") {
  const std::uint64_t seed = 13;
  INFO("seed " << seed);
  Random random(seed);
  for (int i = 0; i < 300; ++i) {
    const auto whole = random_packet(random);
    const ParsedPacket p = parsed(whole);
    const std::size_t ip_end = p.bth_offset - kUdpBytes;
    for (std::size_t n = 0; n < ip_end; ++n) {
      std::vector<std::byte> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(n));
      const auto original = cut;
      REQUIRE_FALSE(patch_ecn(cut, Ecn::ce));
      REQUIRE_FALSE(patch_dscp(cut, 8));
      REQUIRE_FALSE(mark_ce(cut));
      REQUIRE_FALSE(read_ecn(cut));
      REQUIRE(cut == original);
    }
    auto arp = whole;
    store_be16(arp.data() + p.l3_offset - 2, 0x0806);
    REQUIRE_FALSE(patch_ecn(arp, Ecn::ce));
    REQUIRE_FALSE(patch_dscp(arp, 8));
  }
}

}  // namespace paceline::wire
