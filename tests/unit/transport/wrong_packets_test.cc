// Whatever arrives: counted by reason, dropped, and nothing else.
#include <catch2/catch.hpp>
#include <cstring>

#include "dataplane/base/numbers/random.h"
#include "dataplane/wire/extensions/xack.h"
#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

using wire::ParseError;

wire::FlowAddressing from_a_to_b() {
  wire::FlowAddressing flow;
  flow.source_mac = wire::MacAddress::local(1);
  flow.destination_mac = wire::MacAddress::local(2);
  flow.source = wire::IpAddress::v4(0x0A00'0001);
  flow.destination = wire::IpAddress::v4(0x0A00'0002);
  return flow;
}

// A WRITE Only of no bytes, right but for what the caller changes.
Packet write_packet(const wire::FlowAddressing& flow, std::uint32_t qp, std::uint32_t psn) {
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  wire::TransportFields fields;
  fields.opcode = wire::Opcode::rc_write_only;
  fields.dest_qpn = qp;
  fields.psn = Psn(psn);
  fields.ack_request = true;
  const wire::Reth reth{};
  Packet packet;
  packet.header_bytes = static_cast<std::uint16_t>(
      wire::build_data(header, wire::HeaderBuffer{packet.header}, fields, &reth));
  packet.icrc = wire::icrc(packet.header_view(), header.l3_offset);
  return packet;
}

struct Bench {
  Bench() : pair(lab.connect(100, 0)) { lab.run(picos_from_micros(1)); }
  void arrive(const Packet& packet) {
    lab.b().port.inject(lab.now(), packet, {});
    lab.run(lab.now() + picos_from_micros(10));
  }
  std::uint64_t malformed(ParseError error) {
    return lab.b().counters().malformed[static_cast<std::size_t>(error)];
  }
  Lab lab;
  Lab::Pair pair;
};

TEST_CASE("the packet of these tests is accepted when nothing is wrong with it", "[transport]") {
  Bench bench;
  bench.arrive(write_packet(from_a_to_b(), bench.pair.b, 100));
  CHECK(bench.lab.b().counters().rx_data_packets == 1);
  CHECK(bench.lab.b().counters().acks_sent == 1);
  CHECK(bench.lab.a().counters().stale_acks == 1);  // a never asked
}

TEST_CASE("malformed packets are counted by reason", "[transport]") {
  struct Damage {
    ParseError reason;
    void (*apply)(Packet&);
  };
  const Damage damages[] = {
      {ParseError::bad_icrc, [](Packet& p) { p.icrc ^= 1; }},
      {ParseError::bad_icrc, [](Packet& p) { p.header[14 + 20 + 8 + 10] ^= std::byte{1}; }},
      {ParseError::corrupt, [](Packet& p) { p.flags |= packet_flag::corrupt; }},
      {ParseError::too_short, [](Packet& p) { p.header_bytes = 20; }},
      {ParseError::not_ip, [](Packet& p) { p.header[12] = std::byte{0x12}; }},
      {ParseError::ip_checksum, [](Packet& p) { p.header[14 + 8] ^= std::byte{1}; }},
      {ParseError::unknown_opcode, [](Packet& p) { p.header[14 + 20 + 8] = std::byte{0x1F}; }},
      {ParseError::transport_version,
       [](Packet& p) { p.header[14 + 20 + 8 + 1] |= std::byte{0x0F}; }},
  };
  for (const Damage& damage : damages) {
    Bench bench;
    Packet packet = write_packet(from_a_to_b(), bench.pair.b, 100);
    damage.apply(packet);
    bench.arrive(packet);
    CAPTURE(wire::parse_error_name(damage.reason));
    CHECK(bench.malformed(damage.reason) == 1);
    CHECK(telemetry::malformed_total(bench.lab.b().counters()) == 1);
    CHECK(bench.lab.b().counters().rx_data_packets == 0);
    CHECK(bench.lab.a().counters().rx_packets == 0);  // no answer
    CHECK(bench.lab.leftovers().empty());
  }
}

TEST_CASE("an extended acknowledgement that is malformed counts as that alone", "[transport]") {
  struct Damage {
    ParseError reason;
    std::size_t offset;  // in its body
    std::byte flip;
  };
  const Damage damages[] = {
      {ParseError::control_version, 0, std::byte{0x80}},
      {ParseError::control_length, 1, std::byte{0x04}},  // records that are not there
      {ParseError::bad_aeth, 4, std::byte{0x40}},        // a reserved syndrome
  };
  for (const Damage& damage : damages) {
    CAPTURE(wire::parse_error_name(damage.reason));
    Bench bench;
    const wire::HeaderTemplate header = wire::make_header_template(from_a_to_b());
    Packet packet;
    packet.header_bytes = static_cast<std::uint16_t>(wire::build_xack(
        header, wire::HeaderBuffer{packet.header}, bench.pair.b, Psn(0), wire::Xack{}));
    packet.header[header.bth_offset() + wire::kBthBytes + damage.offset] ^= damage.flip;
    packet.icrc = wire::icrc(packet.header_view(), header.l3_offset);
    bench.arrive(packet);
    CHECK(bench.malformed(damage.reason) == 1);
    CHECK(bench.lab.b().counters().acks_received == 0);
    CHECK(bench.lab.leftovers() == "");
  }
}

TEST_CASE("a packet for no queue pair, or from a stranger, is dropped and counted", "[transport]") {
  for (int fault = 0; fault < 4; ++fault) {
    Bench bench;
    wire::FlowAddressing flow = from_a_to_b();
    std::uint32_t qp = bench.pair.b;
    switch (fault) {
      case 0:
        qp += 1;
        break;
      case 1:
        qp = 3;
        break;  // reserved
      case 2:
        flow.source = wire::IpAddress::v4(0x0A00'0099);
        break;
      case 3:
        qp = bench.lab.b().engine.create_qp(bench.lab.qp_config(1));
        break;  // INIT
    }
    bench.arrive(write_packet(flow, qp, 100));
    CAPTURE(fault);
    CHECK(bench.lab.b().counters().no_queue_pair == 1);
    CHECK(bench.lab.b().counters().rx_data_packets == 0);
    CHECK(bench.lab.a().counters().rx_packets == 0);
    CHECK(bench.lab.leftovers().empty());
  }
}

TEST_CASE("a queue pair in error takes nothing more", "[transport]") {
  Bench bench;
  WorkRequest request = bench.lab.request(WorkOpcode::write, 1, 0, 0, 4);
  request.remote_key = 0;
  bench.lab.post(0, bench.pair.a, request);
  bench.lab.run(bench.lab.now() + picos_from_micros(10));
  REQUIRE(bench.lab.b().engine.view().state_of(bench.pair.b) == QpState::error);
  bench.arrive(write_packet(from_a_to_b(), bench.pair.b, 100));
  CHECK(bench.lab.b().counters().wrong_state == 1);
}

TEST_CASE("random bytes crash nothing and leak nothing", "[transport]") {
  Random random(2024);
  Bench bench;
  for (int i = 0; i < 5000; ++i) {
    Packet packet = write_packet(from_a_to_b(), bench.pair.b, 100);
    // Damage that a checksum would catch half of the time: the other half carries a good ICRC.
    const std::uint64_t flips = 1 + random.below(8);
    for (std::uint64_t f = 0; f < flips; ++f) {
      packet.header[random.below(packet.header_bytes)] = static_cast<std::byte>(random.next());
    }
    if (random.below(4) == 0) {
      packet.header_bytes = static_cast<std::uint16_t>(random.below(kMaxHeaderBytes + 1));
    }
    wire::ParsedPacket parsed;
    if (i % 2 == 0 && wire::parse_headers(packet.header_view(), 0, parsed) == ParseError::ok) {
      packet.icrc = wire::icrc(packet.header_view(), parsed.l3_offset);
    }
    bench.arrive(packet);
  }
  CHECK(telemetry::malformed_total(bench.lab.b().counters()) > 2000);
  CHECK(bench.lab.leftovers().empty());
}

}  // namespace
}  // namespace paceline::transport::test
