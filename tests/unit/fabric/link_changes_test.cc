#include "dataplane/fabric/forwarding/link_changes.h"

#include <catch2/catch.hpp>

#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/forwarding/conservation.h"
#include "tests/unit/fabric/forwarding_rig.h"
#include "tests/unit/fabric/random_scenario.h"

namespace paceline::fabric {
namespace {

// Hosts 0 and 1 at switch 2; link 1 leads to host 1, and is the slower one.
FabricSpec changing_links() {
  FabricSpec spec;
  spec.hosts = 2;
  spec.switches = 1;
  spec.links = {{.a = 0, .b = 2, .rate = rate_from_gbps(400), .delay = Picos{1'000'000}},
                {.a = 1, .b = 2, .rate = rate_from_gbps(10), .delay = Picos{1'000'000}}};
  spec.ecn.enabled = false;
  return spec;
}

void run_until(ForwardingRig& rig, LinkChanges& changes, Picos end) {
  for (;;) {
    const Picos next = changes.next();
    // Links at a time come before the agenda.
    while (rig.step(next < end ? next + Picos{1} : end)) {
    }
    if (next >= end) return;
    changes.run(next);
  }
}

TEST_CASE("link changes: a failure loses what is queued and in flight, a return lets go on") {
  FabricSpec spec = changing_links();
  const Picos down{5'000'000};
  const Picos up{50'000'000};
  spec.events = {{.at = down, .link = 1, .action = LinkAction::down},
                 {.at = up, .link = 1, .action = LinkAction::up}};
  ForwardingRig rig(spec);
  LinkChanges changes(rig.spec, rig.forwarding);
  for (int i = 0; i < 20; ++i) rig.send({Picos{0}, 0, 1});
  run_until(rig, changes, down + Picos{1});
  const std::size_t arrived = rig.deliveries.size();
  CHECK(arrived > 0);
  CHECK(rig.state().stats.link_failures == 1);
  CHECK(rig.state().stats.drops[static_cast<std::size_t>(DropReason::link_down)] == 20 - arrived);
  CHECK(check_conservation(rig.state()).empty());
  // Dropped at the switch while the link is down.
  rig.send({Picos{20'000'000}, 0, 1});
  run_until(rig, changes, up + Picos{1});
  CHECK(rig.deliveries.size() == arrived);
  rig.send({Picos{60'000'000}, 0, 1});
  run_until(rig, changes, kNever);
  CHECK(rig.deliveries.size() == arrived + 1);
  CHECK(check_conservation(rig.state()).empty());
}

TEST_CASE("link changes: what is kept for a failed link leaves when it is back") {
  FabricSpec spec = changing_links();
  spec.keep_queued_when_down = true;
  const Picos up{50'000'000};
  spec.events = {{.at = Picos{10}, .link = 1, .action = LinkAction::down},
                 {.at = up, .link = 1, .action = LinkAction::up}};
  ForwardingRig rig(spec);
  LinkChanges changes(rig.spec, rig.forwarding);
  rig.send({Picos{0}, 0, 1});
  run_until(rig, changes, kNever);
  REQUIRE(rig.deliveries.size() == 1);
  CHECK(rig.deliveries[0].at > up + Picos{1'000'000});
}

TEST_CASE("link changes: rate and delay hold for packets that start from then on") {
  FabricSpec spec = changing_links();
  spec.events = {
      {.at = Picos{10'000'000}, .link = 1, .action = LinkAction::rate, .rate = rate_from_gbps(100)},
      {.at = Picos{10'000'000}, .link = 1, .action = LinkAction::delay, .delay = Picos{7}}};
  ForwardingRig rig(spec);
  LinkChanges changes(rig.spec, rig.forwarding);
  rig.send({Picos{0}, 0, 1});
  run_until(rig, changes, Picos{20'000'000});
  rig.send({Picos{20'000'000}, 0, 1});
  run_until(rig, changes, kNever);
  REQUIRE(rig.deliveries.size() == 2);
  const Picos before = rig.deliveries[0].at;
  const Picos after = rig.deliveries[1].at - Picos{20'000'000};
  // Ten times the rate, and the propagation of one link gone.
  const std::uint32_t bytes = rig.spec.wire.wire_bytes(54 + 1'000, 1'000);
  CHECK((before - after).count == Approx(bytes * (800.0 - 80.0) + 1'000'000 - 7).epsilon(0.01));
}

TEST_CASE("link changes: for any failures nothing is lost unaccounted") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 30));
  INFO("seed " << seed);
  Random random(seed, 11);
  FabricSpec spec;
  random_topology(random, spec);
  spec.seed = seed;
  spec.pfc.enabled = random.below(2) == 0;
  spec.pfc.lossless_classes = 1U << kDefaultDataClass;
  spec.pfc.alpha = 0.02;
  spec.keep_queued_when_down = random.below(2) == 0;
  for (int i = 0; i < 12; ++i) {
    const auto link = static_cast<std::uint32_t>(random.below(spec.links.size()));
    const auto at = static_cast<std::int64_t>(random.below(20'000'000));
    spec.events.push_back({.at = Picos{at}, .link = link, .action = LinkAction::down});
    spec.events.push_back({.at = Picos{at + 3'000'000}, .link = link, .action = LinkAction::up});
  }
  ForwardingRig rig(spec);
  LinkChanges changes(rig.spec, rig.forwarding);
  for (std::int64_t t = 0; t < 25'000'000; t += 100'000) {
    run_until(rig, changes, Picos{t});
    const auto from = static_cast<std::uint32_t>(random.below(spec.hosts));
    if (rig.uplink(from).down == 0) rig.send({Picos{t}, from, (from + 1) % spec.hosts});
    REQUIRE(check_conservation(rig.state()).empty());
  }
  run_until(rig, changes, kNever);
  CHECK(rig.state().stats.link_failures > 0);
  CHECK(check_conservation(rig.state()).empty());
}

}  // namespace
}  // namespace paceline::fabric
