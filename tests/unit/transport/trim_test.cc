// Packets of which only the headers arrive (dataplane/wire/extensions/trim.h), with real bytes.
#include <catch2/catch.hpp>

#include "dataplane/wire/extensions/trim.h"
#include "dataplane/wire/extensions/xack.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

// The last packet of a message loses its payload on the way from `from`, so many times. Nothing
// comes behind it that could tell of the loss.
struct TrimmedTail {
  TrimmedTail(Lab& lab, unsigned from, std::uint32_t psn, unsigned times = 1) : times(times) {
    Lab::Side& to = lab.side(1 - from);
    to.cable.set_script(drop_if([this, psn](const wire::ParsedPacket& p) {
      return p.psn.value() == psn && p.properties.carries_payload() && dropped < this->times &&
             ++dropped != 0;
    }));
    lab.side(from).port.on_departure = [this, &to, psn](Picos now, const Packet& packet) {
      wire::ParsedPacket parsed;
      if (wire::parse_brief(packet.header_view(), packet.payload_bytes, {}, parsed) !=
              wire::ParseError::ok ||
          parsed.psn.value() != psn || !parsed.properties.carries_payload() ||
          trimmed == this->times) {
        return;
      }
      ++trimmed;
      Packet left = packet;
      REQUIRE(wire::patch_trimmed(left.header_view(), 7));
      left.flags |= packet_flag::trimmed;
      left.payload_bytes = 0;
      left.payload_kind = PayloadKind::none;
      to.port.inject(now + picos_from_micros(2), left, {});
    };
  }
  unsigned times;
  unsigned dropped = 0;
  unsigned trimmed = 0;
};

LabOptions repairing(Reliability reliability) {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.engine.reliability = reliability;
  return options;
}

TEST_CASE("trimmed: a tail is sent again at once, by either way to repair losses",
          "[transport][trim]") {
  for (const Reliability reliability : {Reliability::selective, Reliability::go_back_n}) {
    for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::send}) {
      Lab lab(repairing(reliability));
      Lab::fill(lab.a().memory, 3);
      const Lab::Pair pair = lab.connect(100, 0);
      TrimmedTail tail(lab, 0, 119);
      if (opcode == WorkOpcode::send) REQUIRE(lab.b().post_receive(1, 0, 20 * kMtu));
      REQUIRE(lab.post(0, pair.a, lab.request(opcode, 1, 0, 0, 20 * kMtu)) == PostResult::ok);
      // Well before a probe (5 us of silence at least, four empty round trips here) or the timer.
      CHECK(lab.run(picos_from_micros(1000)));
      REQUIRE(tail.trimmed == 1);
      REQUIRE(lab.a().sent().size() == 1);
      CHECK(equal_memories(lab, 20 * kMtu));
      CHECK(lab.b().counters().rx_trimmed == 1);
      CHECK(lab.a().counters().retransmitted_packets == 1);
      CHECK(lab.a().counters().timeouts == 0);
      CHECK(lab.a().counters().tail_probes == 0);
      CHECK(lab.a().counters().trim_losses == (reliability == Reliability::selective ? 1 : 0));
      CHECK(lab.b().counters().naks_sent == (reliability == Reliability::selective ? 0 : 1));
      CHECK(lab.leftovers() == "");
    }
  }
}

// In an incast wider than the path most packets are, many times over.
TEST_CASE("trimmed: what is trimmed again and again is sent again each time, and no more",
          "[transport][trim]") {
  constexpr unsigned kTimes = 50;
  Lab lab(repairing(Reliability::selective));
  Lab::fill(lab.a().memory, 5);
  const Lab::Pair pair = lab.connect(100, 0);
  TrimmedTail tail(lab, 0, 119, kTimes);
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 20 * kMtu)) ==
          PostResult::ok);
  CHECK(lab.run(picos_from_micros(5'000)));
  REQUIRE(tail.trimmed == kTimes);
  REQUIRE(lab.a().sent().size() == 1);
  CHECK(equal_memories(lab, 20 * kMtu));
  CHECK(lab.a().counters().trim_losses == kTimes);
  CHECK(lab.a().counters().retransmitted_packets == kTimes);
  CHECK(lab.a().counters().tail_probes == 0);
  CHECK(lab.leftovers() == "");
}

TEST_CASE("trimmed: a READ response is asked for again, it alone", "[transport][trim]") {
  Lab lab(repairing(Reliability::selective));
  Lab::fill(lab.b().memory, 4);
  const Lab::Pair pair = lab.connect(100, 0);
  TrimmedTail tail(lab, 1, 119);
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 20 * kMtu)) == PostResult::ok);
  CHECK(lab.run(picos_from_micros(1000)));
  REQUIRE(tail.trimmed == 1);
  REQUIRE(lab.a().sent().size() == 1);
  CHECK(equal_memories(lab, 20 * kMtu));
  CHECK(lab.a().counters().rx_trimmed == 1);
  CHECK(lab.b().counters().retransmitted_packets <= 1);
  CHECK(lab.leftovers() == "");
}

TEST_CASE("trimmed: headers that make no sense are counted and dropped", "[transport][trim]") {
  Lab lab(repairing(Reliability::selective));
  lab.connect(100, 0);
  Packet packet;
  packet.header.fill(std::byte{0});
  packet.header_bytes = 70;
  packet.flags = packet_flag::trimmed;
  lab.b().port.inject(picos_from_micros(1), packet, {});
  lab.run(picos_from_micros(100));
  CHECK(telemetry::malformed_total(lab.b().counters()) == 1);
  CHECK(lab.b().counters().rx_trimmed == 0);
  CHECK(lab.leftovers() == "");
}

}  // namespace
}  // namespace paceline::transport::test
