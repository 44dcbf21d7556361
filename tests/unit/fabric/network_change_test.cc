// Links that are changed while the fabric runs.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

FabricSpec changeable_star(std::uint32_t hosts) {
  FabricSpec spec = star(hosts, rate_from_gbps(100), picos_from_micros(1));
  spec.ecn.enabled = spec.pfc.enabled = false;
  spec.changeable = true;
  return spec;
}

void send_all(Lab& lab, const RandomScenario& scenario) {
  lab.reply(scenario.reply);
  for (const Send& send : scenario.sends) lab.send(send);
}

void change_one(Network& network, const LinkEvent& event) { network.change({&event, 1}); }

TEST_CASE("change: it does what an event of the spec does") {
  constexpr Picos kEnd = picos_from_micros(100'000);
  std::uint64_t failures = 0, changes = 0;
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    RandomScenario scenario = wild_scenario(seed);
    Random random(seed, 4);
    std::vector<LinkEvent>& events = scenario.spec.events;
    for (LinkEvent& event : events) {
      const bool whole = event.action == LinkAction::down || event.action == LinkAction::up;
      if (!whole) event.directions = static_cast<std::uint8_t>(1 + random.below(3));
    }
    std::stable_sort(events.begin(), events.end(),
                     [](const LinkEvent& a, const LinkEvent& b) { return a.at < b.at; });
    Lab known(scenario.spec);
    send_all(known, scenario);
    known.run(kEnd);
    known.net().finish(kEnd);

    FabricSpec spec = scenario.spec;
    spec.events.clear();
    spec.changeable = true;
    Lab changed(spec);
    send_all(changed, scenario);
    Picos reached{-1};
    for (const LinkEvent& event : events) {
      // Given at any time before it happens.
      const auto wait = static_cast<std::uint64_t>((event.at - reached).count);
      if (wait > 1) {
        reached += Picos{static_cast<std::int64_t>(random.below(wait))};
        changed.run(reached);
      }
      change_one(changed.net(), event);
    }
    changed.run(kEnd);
    changed.net().finish(kEnd);
    CHECK(changed.net().check_conservation() == "");
    CHECK(changed.trace_hash() == known.trace_hash());
    CHECK(changed.net().stats() == known.net().stats());
    failures += known.net().stats().link_failures;
    changes += events.size();
  }
  CHECK(failures > 20);
  CHECK(changes > 150);
}

TEST_CASE("change: one direction alone") {
  for (const std::uint8_t directions : {std::uint8_t{1}, std::uint8_t{2}}) {
    CAPTURE(int{directions});
    Lab lab(changeable_star(3));
    change_one(lab.net(), {.at = picos_from_micros(10),
                           .link = 0,
                           .action = LinkAction::loss,
                           .probability = 1,
                           .directions = directions});
    constexpr std::uint64_t kEach = 100;
    for (std::uint64_t i = 0; i < kEach; ++i) {
      const Picos at = picos_from_micros(20);
      lab.send({.at = at, .from = 0, .to = 1});
      lab.send({.at = at, .from = 1, .to = 0});
      lab.send({.at = at, .from = 1, .to = 2});
    }
    REQUIRE(lab.run());
    const auto arrived = [&](std::uint32_t host) {
      return static_cast<std::uint64_t>(
          std::count_if(lab.deliveries().begin(), lab.deliveries().end(),
                        [host](const Delivery& d) { return d.host == host; }));
    };
    // Bit 0 is from the host, which is the link's first end.
    CHECK(arrived(1) == (directions == 1 ? 0 : kEach));
    CHECK(arrived(0) == (directions == 1 ? kEach : 0));
    CHECK(arrived(2) == kEach);
    CHECK(lab.net().check_conservation() == "");
  }
}

TEST_CASE("change: rate and delay of one direction leave the other as it was") {
  FabricSpec spec = changeable_star(2);
  Lab lab(spec);
  const std::uint8_t to_host = 2;
  change_one(lab.net(), {.at = Picos{1},
                         .link = 1,
                         .action = LinkAction::rate,
                         .rate = rate_from_gbps(1),
                         .directions = to_host});
  change_one(lab.net(), {.at = Picos{1},
                         .link = 1,
                         .action = LinkAction::delay,
                         .delay = picos_from_micros(7),
                         .directions = to_host});
  const Picos at = picos_from_micros(1);
  lab.send({.at = at, .from = 0, .to = 1, .payload = 4096});
  lab.send({.at = at, .from = 1, .to = 0, .payload = 4096});
  REQUIRE(lab.run());
  REQUIRE(lab.deliveries().size() == 2);
  const std::uint32_t bytes = lab_wire_bytes(4096);
  const Picos fast = serialization_time(bytes, rate_from_gbps(100));
  for (const Delivery& d : lab.deliveries()) {
    const Picos slow = serialization_time(bytes, rate_from_gbps(1)) + picos_from_micros(7);
    const Picos last = d.host == 1 ? slow : fast + picos_from_micros(1);
    CHECK(d.at == at + fast + picos_from_micros(1) + last);
  }
}

TEST_CASE("change: links that are not there, and fabrics that stay as they are") {
  FabricSpec spec = changeable_star(2);
  Lab lab(spec);
  CHECK_THROWS_AS(change_one(lab.net(), {.link = 2}), std::invalid_argument);
  spec.changeable = false;
  Lab fixed(spec);
  CHECK_THROWS_AS(change_one(fixed.net(), {.link = 0}), std::invalid_argument);
  REQUIRE(lab.run());
  CHECK(lab.net().stats().link_failures == 0);
}

}  // namespace
}  // namespace paceline::fabric
