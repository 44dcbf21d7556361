#include "dataplane/wire/extensions/trim.h"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "dataplane/wire/bytes/checksum.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::wire {
namespace {

// Headers of a WRITE Only with 1000 bytes of payload, untagged or tagged.
std::vector<std::byte> write_headers(bool ipv6) {
  FlowAddressing flow;
  flow.source = IpAddress::v4(0x0A000001);
  flow.destination = IpAddress::v4(0x0A000002);
  if (ipv6) {
    flow.source = flow.destination = IpAddress{};
    flow.source.bytes[0] = flow.destination.bytes[0] = std::byte{0xFD};
    flow.source.bytes[15] = std::byte{1};
    flow.destination.bytes[15] = std::byte{2};
  }
  flow.dscp = 26;
  flow.ecn = Ecn::ect0;
  std::array<std::byte, kHeaderBufferBytes> out{};
  TransportFields fields;
  fields.opcode = Opcode::rc_write_only;
  fields.dest_qpn = 0x1234;
  fields.psn = Psn(77);
  fields.payload_bytes = 1000;
  Extensions ext;
  ext.reth = {0x1000, 0x55, 1000};
  const std::size_t bytes = build_packet(make_header_template(flow), out, fields, ext);
  return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(bytes)};
}

TEST_CASE("trim: the code points are of their class and no class sends with them", "[wire][trim]") {
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) {
    CHECK(kDefaultDscpMap.traffic_class(trimmed_dscp(c)) == c);
    for (const std::uint8_t sent : kDefaultDscpMap.dscp_of) CHECK(trimmed_dscp(c) != sent);
  }
  CHECK(trimmed_dscp(7) == 61);
}

TEST_CASE("trim: what is left tells what was cut off", "[wire][trim]") {
  for (const bool ipv6 : {false, true}) {
    std::vector<std::byte> headers = write_headers(ipv6);
    ParsedPacket parsed;
    REQUIRE(parse_headers(headers, 1000, parsed) == ParseError::ok);
    REQUIRE(patch_trimmed(headers, 7));
    if (!ipv6) {
      CHECK(headers[15] == std::byte{61 << 2 | 2});
      CHECK(ipv4_checksum_ok(headers.data() + 14));
    }
    CHECK(parse_headers(headers, 0, parsed) == ParseError::ip_length);  // no packet by itself
    ParsedPacket trimmed;
    REQUIRE(parse_trimmed(headers, trimmed) == ParseError::ok);
    CHECK(trimmed.dscp == 61);
    CHECK(trimmed.ecn == Ecn::ect0);
    CHECK(trimmed.psn == Psn(77));
    CHECK(trimmed.dest_qpn == 0x1234);
    CHECK(trimmed.payload_bytes == 1000);
    CHECK(trimmed.ext.reth.length == 1000);
  }
}

TEST_CASE("trim: what cannot have been trimmed is refused", "[wire][trim]") {
  ParsedPacket out;
  CHECK(parse_trimmed({}, out) == ParseError::not_ip);
  CHECK_FALSE(patch_trimmed({}, 7));
  std::vector<std::byte> headers = write_headers(false);
  // Lengths that promise nothing beyond the headers.
  std::vector<std::byte> whole = headers;
  const auto total = static_cast<std::uint16_t>(whole.size() - 14 + kIcrcBytes);
  whole[16] = static_cast<std::byte>(total >> 8);
  whole[17] = static_cast<std::byte>(total & 0xFF);
  CHECK(parse_trimmed(whole, out) == ParseError::ip_length);
  // UDP says otherwise than IP.
  std::vector<std::byte> odd = headers;
  odd[39] ^= std::byte{4};
  CHECK(parse_trimmed(odd, out) == ParseError::udp_length);
  headers[12] = std::byte{0x08};
  headers[13] = std::byte{0x06};
  CHECK_FALSE(patch_trimmed(headers, 7));
  CHECK(parse_trimmed(headers, out) == ParseError::not_ip);
}

}  // namespace
}  // namespace paceline::wire
