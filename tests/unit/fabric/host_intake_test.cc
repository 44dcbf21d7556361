#include "dataplane/fabric/wire/host_intake.h"

#include <array>
#include <catch2/catch.hpp>

#include "dataplane/fabric/wire/link.h"
#include "dataplane/wire/headers/opcodes.h"

namespace paceline::fabric {
namespace {

constexpr std::uint8_t kAcknowledge = static_cast<std::uint8_t>(wire::Opcode::rc_acknowledge);
constexpr std::uint8_t kHello = 0xC0;

FabricSpec four_hosts() {
  FabricSpec spec;
  spec.hosts = 4;
  return spec;
}

void put_header(Packet& packet, std::size_t at, std::uint64_t value, std::size_t bytes) {
  for (std::size_t i = 0; i < bytes; ++i) {
    packet.header[at + i] = static_cast<std::byte>(value >> 8 * (bytes - 1 - i) & 0xFF);
  }
}

Packet ipv4_packet(std::uint32_t from, std::uint32_t to, std::uint16_t source_port,
                   std::uint8_t opcode = 0x0A) {
  Packet packet{};
  packet.header_bytes = 14 + 20 + 8 + 12;
  packet.bth_offset = 14 + 20 + 8;
  put_header(packet, 12, 0x0800, 2);
  put_header(packet, 26, from, 4);
  put_header(packet, 30, to, 4);
  put_header(packet, 34, source_port, 2);
  put_header(packet, packet.bth_offset, opcode, 1);
  packet.traffic_class = kControlClass;
  return packet;
}

TEST_CASE("intake: an IPv4 packet goes to the host of its address, others to nobody") {
  const FabricSpec spec = four_hosts();
  HostIntake intake(spec);
  Packet packet = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 3, 50'000);
  intake.prepare(packet);
  CHECK(packet.route == 2);
  CHECK(packet.wire_bytes == spec.wire.wire_bytes(packet.frame_bytes(), 0));
  for (const std::uint32_t to : {spec.subnet_base, spec.subnet_base + 5, 0U}) {
    packet = ipv4_packet(spec.subnet_base + 1, to, 50'000);
    intake.prepare(packet);
    CHECK(packet.route == kRouteNone);
  }
  packet = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 3, 50'000);
  packet.header_bytes = 35;  // its source port is cut off
  intake.prepare(packet);
  CHECK(packet.route == kRouteNone);
}

TEST_CASE("intake: with a subnet for each port, a packet goes to the port of its address") {
  FabricSpec spec = four_hosts();  // two NICs of two ports
  spec.ports = 2;
  spec.port_subnets = true;
  HostIntake intake(spec);
  const std::uint32_t base = spec.subnet_base;
  const std::pair<std::uint32_t, std::uint32_t> cases[] = {{base + 1, 0},
                                                           {base + 2, 1},
                                                           {base + 3, kRouteNone},
                                                           {base + 0x10001, 2},
                                                           {base + 0x10002, 3},
                                                           {base + 0x10003, kRouteNone},
                                                           {base + 0x20001, kRouteNone},
                                                           {base, kRouteNone}};
  for (const auto& [to, route] : cases) {
    CAPTURE(to - base);
    Packet packet = ipv4_packet(base + 1, to, 50'000);
    intake.prepare(packet);
    CHECK(packet.route == route);
    CHECK(host_of(spec, wire::IpAddress::v4(to)) == (route == kRouteNone ? spec.hosts : route));
    wire::IpAddress v6 = host_address_v6(spec, 0);
    wire::store_be32(v6.bytes.data() + 12, to);
    CHECK(host_of(spec, v6) == (route == kRouteNone ? spec.hosts : route));
  }
}

TEST_CASE("intake: an IPv6 packet goes by the prefix and the last 32 bits") {
  const FabricSpec spec = four_hosts();
  HostIntake intake(spec);
  Packet packet{};
  packet.header_bytes = 14 + 40 + 8 + 12;
  packet.bth_offset = 14 + 40 + 8;
  put_header(packet, 12, 0x86DD, 2);
  put_header(packet, 38, spec.prefix_v6, 8);
  put_header(packet, 50, spec.subnet_base + 4, 4);
  intake.prepare(packet);
  CHECK(packet.route == 3);
  put_header(packet, 46, 1, 4);  // bits that are zero in every host's address
  intake.prepare(packet);
  CHECK(packet.route == kRouteNone);
  put_header(packet, 46, 0, 4);
  put_header(packet, 38, spec.prefix_v6 + 1, 8);
  intake.prepare(packet);
  CHECK(packet.route == kRouteNone);
}

TEST_CASE("intake: a flow keeps its entropy, another source port has another") {
  const FabricSpec spec = four_hosts();
  HostIntake intake(spec);
  Packet one = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 2, 50'000);
  Packet same = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 2, 50'000, kAcknowledge);
  Packet other = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 2, 50'001);
  for (Packet* packet : {&one, &same, &other}) intake.prepare(*packet);
  CHECK(one.entropy == same.entropy);
  CHECK(one.entropy != other.entropy);
}

TEST_CASE("intake: answers move to the class that the fabric has for them") {
  FabricSpec spec = four_hosts();
  spec.ack_class = 5;
  spec.cnp_class = 6;
  HostIntake intake(spec);
  const auto class_of = [&](std::uint8_t opcode, std::uint8_t sent_in) {
    Packet packet = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 2, 1, opcode);
    packet.traffic_class = sent_in;
    intake.prepare(packet);
    return packet.traffic_class;
  };
  CHECK(class_of(kAcknowledge, kControlClass) == 5);
  CHECK(class_of(static_cast<std::uint8_t>(wire::Opcode::cnp), kControlClass) == 6);
  CHECK(class_of(0x0A, kControlClass) == kControlClass);
  CHECK(class_of(kAcknowledge, 3) == 3);
}

TEST_CASE("intake: only the control packets that may be lost are, as often as the share says") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(1, 4));
  INFO("seed " << seed);
  FabricSpec spec = four_hosts();
  spec.seed = seed;
  spec.drop_control_ppm = 200'000;
  spec.control_opcodes = 1;  // HELLO alone
  HostIntake intake(spec);
  int lost = 0;
  for (int i = 0; i < 5'000; ++i) {
    Packet hello = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 2, 1, kHello);
    Packet data = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 2, 1, 0x0A);
    Packet request = ipv4_packet(spec.subnet_base + 1, spec.subnet_base + 2, 1, kHello + 1);
    for (Packet* packet : {&hello, &data, &request}) intake.prepare(*packet);
    lost += hello.route == kRouteLost ? 1 : 0;
    CHECK(data.route == 1);
    CHECK(request.route == 1);
  }
  CHECK(lost == Approx(1'000).margin(142));  // five standard deviations
}

TEST_CASE("intake: who knows where a packet goes is believed, whatever the protocol") {
  const FabricSpec spec = four_hosts();
  HostIntake intake(spec);
  Packet frame{};  // not IP: a MAC header and a protocol of its own
  frame.header_bytes = 64;
  intake.prepare_for(frame, 2, 3);
  CHECK(frame.route == 3);
  CHECK(frame.traffic_class == 2);
  CHECK(frame.wire_bytes == spec.wire.wire_bytes(frame.frame_bytes() - 4, 0));  // it has no ICRC
  intake.prepare_for(frame, 2, 4);
  CHECK(frame.route == kRouteNone);
}

}  // namespace
}  // namespace paceline::fabric
