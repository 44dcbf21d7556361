// The bytes of CM messages. The golden ones follow the specification's tables. tshark's dissector
// read those of REQ, REJ, REP, RTU, DREQ and DREP as they are set here; it knows neither MRA nor
// SIDR.
#include <catch2/catch.hpp>

#include <string>

#include "dataplane/service/cm/mad/ip_service.h"
#include "dataplane/service/cm/mad/mad.h"

namespace paceline::service::cm {

namespace {

std::string hex(const MadBytes& bytes, std::size_t from, std::size_t count) {
  std::string out;
  for (std::size_t i = from; i < from + count; ++i) {
    constexpr const char* kDigits = "0123456789abcdef";
    out += kDigits[static_cast<unsigned>(bytes[i]) >> 4U];
    out += kDigits[static_cast<unsigned>(bytes[i]) & 15U];
  }
  return out;
}

Mad example(Attribute attribute) {
  Mad m;
  m.attribute = attribute;
  m.transaction = 0x0102'0304'0506'0708;
  m.local_id = 0x1112'1314;
  m.remote_id = 0x2122'2324;
  m.service_id = service_id(PortSpace::tcp, 7174);
  m.guid = 0x0200'00FF'FE00'0001;
  m.qkey = 0x0123'4567;
  m.qp_number = 0x31;
  m.starting_psn = 0xAB'CDEF;
  m.partition_key = 0xFFFF;
  m.reason = 28;
  m.about = About::rep;
  m.status = 2;
  m.service_timeout = 24;
  m.service_type = 1;
  m.responder_resources = 4;
  m.initiator_depth = 5;
  m.flow_control = 1;
  m.retry_count = 7;
  m.rnr_retry_count = 6;
  m.shared_receives = 1;
  m.path_mtu = 3;
  m.remote_response_timeout = 20;
  m.local_response_timeout = 21;
  m.most_retries = 15;
  m.target_ack_delay = 9;
  m.path.local = wire::IpAddress::v4(0x0A00'0001);
  m.path.remote = wire::IpAddress::v4(0x0A00'0002);
  m.path.packet_rate = 15;
  m.path.traffic_class = 0x68;
  m.path.hop_limit = 64;
  m.path.service_level = 3;
  m.path.ack_timeout = 17;
  put_ip_header(m.private_data.data(), {m.path.local, m.path.remote, 40000, true});
  m.private_data[kIpHeaderBytes] = std::byte{'p'};
  return m;
}

constexpr Attribute kAll[] = {Attribute::req,  Attribute::mra,      Attribute::rej,
                              Attribute::rep,  Attribute::rtu,      Attribute::dreq,
                              Attribute::drep, Attribute::sidr_req, Attribute::sidr_rep};

}  // namespace

TEST_CASE("a REQ is as the specification lays it out") {
  const MadBytes bytes = build_mad(example(Attribute::req));
  REQUIRE(hex(bytes, 0, 24) == "010702030000000001020304050607080010000000000000");
  REQUIRE(hex(bytes, 24, 32) == "11121314000000000000000001061c06020000fffe0000010000000001234567");
  REQUIRE(hex(bytes, 56, 24) == "0000310400000005000000a3abcdefafffff36f8ffffffff");
  REQUIRE(hex(bytes, 80, 32) == "00000000000000000000ffff0a00000100000000000000000000ffff0a000002");
  REQUIRE(hex(bytes, 112, 8) == "0000000f68403088");
  // The private data of RDMA IP connection management: version, family, source port, addresses,
  // then the program's own.
  REQUIRE(hex(bytes, 164, 37) ==
          "00409c400000000000000000000000000a0000010000000000000000000000000a00000270");
}

TEST_CASE("the other CM messages are as the specification lays them out") {
  const auto body = [](Attribute attribute, std::size_t count) {
    const MadBytes bytes = build_mad(example(attribute));
    REQUIRE(hex(bytes, 16, 2) == "00" + hex({std::byte(static_cast<unsigned>(attribute))}, 0, 1));
    return hex(bytes, 24, count);
  };
  REQUIRE(body(Attribute::mra, 12) == "111213142122232440c00040");
  REQUIRE(body(Attribute::rej, 12) == "11121314212223244000001c");
  REQUIRE(body(Attribute::rep, 36) ==
          "1112131421222324012345670000310000000000abcdef00040549d0020000fffe000001");
  REQUIRE(body(Attribute::rtu, 12) == "111213142122232400409c40");
  REQUIRE(body(Attribute::dreq, 12) == "111213142122232400003100");
  REQUIRE(body(Attribute::drep, 12) == "111213142122232400409c40");
  REQUIRE(body(Attribute::sidr_req, 16) == "11121314ffff00000000000001061c06");
  REQUIRE(body(Attribute::sidr_rep, 24) == "1112131402000000000031000000000001061c0601234567");
}

TEST_CASE("what is read is what was written") {
  for (const Attribute attribute : kAll) {
    const MadBytes bytes = build_mad(example(attribute));
    const auto read = parse_mad(bytes);
    REQUIRE(read.has_value());
    REQUIRE(build_mad(*read) == bytes);
    REQUIRE(parse_mad(build_mad(*read)) == read);
  }
}

TEST_CASE("what is no CM message is not read") {
  MadBytes bytes = build_mad(example(Attribute::rep));
  REQUIRE_FALSE(parse_mad(std::span(bytes).first(255)).has_value());
  for (const std::size_t at : {0U, 1U, 2U, 3U, 16U, 17U}) {
    MadBytes wrong = bytes;
    wrong[at] ^= std::byte{0x80};
    REQUIRE_FALSE(parse_mad(wrong).has_value());
  }
}

TEST_CASE("a Get or a Set of any class is answered: not supported") {
  MadBytes bytes{};
  bytes[0] = std::byte{1};
  bytes[1] = std::byte{4};  // performance management
  bytes[2] = std::byte{1};
  bytes[15] = std::byte{9};  // transaction
  for (const unsigned method : {1U, 2U}) {
    bytes[3] = std::byte(method);
    const auto answer = answer_to_query(bytes);
    REQUIRE(answer.has_value());
    REQUIRE(hex(*answer, 0, 16) == "01040181000c00000000000000000009");
    // An answer is not answered.
    REQUIRE_FALSE(answer_to_query(*answer).has_value());
    REQUIRE_FALSE(answer_to_query(std::span(bytes).first(100)).has_value());
  }
  REQUIRE_FALSE(answer_to_query(build_mad(example(Attribute::req))).has_value());
}

TEST_CASE("a service id names a port space and a port, or is none of IP") {
  REQUIRE(service_id(PortSpace::udp, 7174) == 0x0111'1C06);
  REQUIRE(ip_service(0x0106'1C06)->port == 7174);
  REQUIRE(ip_service(0x013F'0001)->space == PortSpace::ib);
  REQUIRE_FALSE(ip_service(0x0107'1C06).has_value());
  REQUIRE_FALSE(ip_service(0x1'0106'1C06).has_value());
}

TEST_CASE("the header of IP addresses keeps both families") {
  for (const bool v4 : {true, false}) {
    IpHeader header;
    header.v4 = v4;
    header.source_port = 4242;
    header.source = v4 ? wire::IpAddress::v4(0x0A00'0001) : *wire::ip_address_from_text("fd00::1");
    header.destination =
        v4 ? wire::IpAddress::v4(0x0A00'0002) : *wire::ip_address_from_text("fd00::2");
    std::array<std::byte, kIpHeaderBytes> bytes{};
    put_ip_header(bytes.data(), header);
    REQUIRE(read_ip_header(bytes) == header);
    bytes[1] = std::byte{0x50};
    REQUIRE_FALSE(read_ip_header(bytes).has_value());
  }
}

}  // namespace paceline::service::cm
