// In-band telemetry: what switches record, and that it follows a packet wherever it goes.
#include <catch2/catch.hpp>
#include <string>

#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

constexpr std::uint32_t kTold = wire::kIntHeaderBytes;

// Two hosts send to a third through one switch; 100 Gb/s, 1 us.
FabricSpec told_star(std::uint32_t hosts = 3) {
  FabricSpec spec;
  spec.hosts = hosts;
  spec.switches = 1;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    spec.links.push_back(
        {.a = h, .b = hosts, .rate = rate_from_gbps(100), .delay = picos_from_micros(1)});
  }
  spec.telemetry = true;
  return spec;
}

TEST_CASE("telemetry: a record has queue, bytes before, time and rate of the link") {
  Lab lab(told_star());
  // A packet of 1000 + 82 + 42 bytes takes 89.92 ns on a link. Both arrive at the switch then; the
  // one of the lower link leaves first, the other waits for it.
  lab.send({.at = Picos{0}, .from = 0, .to = 2});
  lab.send({.at = Picos{0}, .from = 1, .to = 2});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 2);
  const std::uint32_t bytes = lab_wire_bytes(1000) + kTold;
  const IntStack& first = lab.deliveries()[0].recorded;
  const IntStack& second = lab.deliveries()[1].recorded;
  REQUIRE(first.hops == 1);
  REQUIRE(second.hops == 1);
  CHECK(first.path == second.path);
  CHECK(first.hop[0].rate_mbps == 100'000);
  CHECK(first.hop[0].queue_bytes == 0);  // the other has not come yet: the tie goes by link number
  CHECK(first.hop[0].sent_bytes == 0);
  CHECK(first.hop[0].time_ns == 1000 + bytes * 80 / 1000);
  CHECK(second.hop[0].queue_bytes == 0);  // nobody is behind it
  CHECK(second.hop[0].sent_bytes == bytes / 64 * 64);
  CHECK(second.hop[0].time_ns == 1000 + 2 * bytes * 80 / 1000);
}

TEST_CASE("telemetry: the queue is what stays behind") {
  Lab lab(told_star(5));
  for (std::uint32_t from = 0; from < 4; ++from) lab.send({.at = Picos{0}, .from = from, .to = 4});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 4);
  const std::uint32_t bytes = lab_wire_bytes(1000) + kTold;
  // The first found nobody; the second left two behind, and so on.
  CHECK(lab.deliveries()[1].recorded.hop[0].queue_bytes == 2 * bytes / 16 * 16);
  CHECK(lab.deliveries()[2].recorded.hop[0].queue_bytes == bytes / 16 * 16);
  CHECK(lab.deliveries()[3].recorded.hop[0].queue_bytes == 0);
}

TEST_CASE("telemetry: the header is charged for whoever wants it, and for nobody else") {
  FabricSpec spec = told_star();
  Lab with(spec);
  spec.telemetry = false;
  Lab without(spec);
  for (Lab* lab : {&with, &without}) {
    lab->reply(true);
    lab->send({.at = Picos{0}, .from = 0, .to = 2});
    REQUIRE(lab->run());
    REQUIRE(lab->deliveries().size() == 2);
    CHECK(lab->deliveries()[1].recorded.hops == 0);  // the answer did not ask
    CHECK(lab->net().check_conservation().empty());
  }
  CHECK(with.net().stats().injected_bytes == without.net().stats().injected_bytes + kTold);
  CHECK(with.deliveries()[0].recorded.hops == 1);
  CHECK(without.deliveries()[0].recorded.hops == 0);
}

TEST_CASE("telemetry: every switch of the path records, up to five, and paths differ") {
  // A chain of seven switches, a host at each end; and a host at the third.
  FabricSpec spec;
  spec.hosts = 3;
  spec.switches = 7;
  const auto link = [&](std::uint32_t a, std::uint32_t b, unsigned gbps) {
    spec.links.push_back(
        {.a = a, .b = b, .rate = rate_from_gbps(gbps), .delay = picos_from_micros(1)});
  };
  link(0, 3, 100);
  for (std::uint32_t s = 0; s < 6; ++s) link(3 + s, 4 + s, 40);
  link(1, 9, 100);
  link(2, 5, 25);
  spec.telemetry = true;
  Lab lab(spec);
  lab.send({.at = Picos{0}, .from = 0, .to = 1});
  lab.send({.at = picos_from_micros(1), .from = 0, .to = 2});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 2);
  const IntStack& near = lab.deliveries()[0].recorded;
  const IntStack& far = lab.deliveries()[1].recorded;
  REQUIRE(near.hops == 3);
  CHECK(near.hop[1].rate_mbps == 40'000);
  CHECK(near.hop[2].rate_mbps == 25'000);
  REQUIRE(far.hops == kIntHops);  // a sixth finds no room
  CHECK(far.hop[4].rate_mbps == 40'000);
  CHECK(far.path != near.path);
}

TEST_CASE("telemetry: records are the same however late departures are decided") {
  std::uint64_t queued = 0, copies = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    RandomScenario scenario = seed % 2 == 0 ? random_scenario(seed) : wild_scenario(2'000 + seed);
    scenario.spec.telemetry = true;
    std::vector<Delivery> deliveries;
    for (const bool exact : {false, true}) {
      scenario.spec.exact_departures = exact;
      Lab lab(scenario.spec);
      lab.reply(scenario.reply);
      for (const Send& send : scenario.sends) lab.send(send);
      lab.run(picos_from_micros(100'000));
      CHECK(lab.net().check_conservation().empty());
      if (!exact) {
        deliveries = lab.deliveries();
        continue;
      }
      CHECK(deliveries == lab.deliveries());
    }
    for (const Delivery& d : deliveries) {
      if (d.recorded.hops != 0 && d.recorded.hop[0].queue_bytes != 0) ++queued;
      if ((d.flags & packet_flag::duplicate) != 0 && d.recorded.hops != 0) ++copies;
    }
  }
  CHECK(queued > 5'000);
  CHECK(copies > 20);
}

}  // namespace
}  // namespace paceline::fabric
