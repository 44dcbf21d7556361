// The yardsticks on fabrics of several tiers and rates, against sums done by hand and against runs.
#include "dataplane/driver/traffic/fabric_ideal.h"

#include <catch2/catch.hpp>

#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline {
namespace {

config::Scenario leaf_spine(std::uint64_t uplink_gbps) {
  config::Scenario s = quiet_star(8);
  s.fabric.topology = "leaf_spine";
  s.fabric.leaves = 2;
  s.fabric.spines = 2;
  s.fabric.hosts_per_leaf = 4;
  s.fabric.switches = 4;
  s.fabric.uplink_rate = rate_from_gbps(uplink_gbps);
  return s;
}

struct Yardstick {
  explicit Yardstick(config::Scenario s)
      : scenario(std::move(s)), plan(plan_world(scenario)), topology(plan.fabric) {}
  FabricIdeal ideal() const { return {scenario, plan.fabric, topology}; }
  config::Scenario scenario;
  WorldPlan plan;
  fabric::Topology topology;
};

TEST_CASE("ideal: paths of several rates", "[ideal]") {
  const Yardstick y(leaf_spine(400));
  // Up at 100, over at 400 twice, down at 100: 80 and 20 ps a byte.
  CHECK(y.ideal().fct(0, 4, 4096).count == 4194 * 200 + 86 * 200 + 8'000'000);
  CHECK(y.ideal().fct(0, 1, 4096).count == 4194 * 160 + 86 * 160 + 4'000'000);
  // Two packets: the last link serves both, the first packet having crossed the others.
  CHECK(y.ideal().fct(0, 4, 8192).count ==
        4194 * (80 + 20 + 20 + 80) + 4178 * 80 + 86 * 200 + 8'000'000);
  // A slow core: the second packet waits there, and then crosses what follows.
  const Yardstick slow(leaf_spine(50));
  CHECK(slow.ideal().fct(0, 4, 8192).count ==
        4194 * (80 + 160 + 160) + 4178 * 160 + 4178 * 80 + 86 * 480 + 8'000'000);
  CHECK(slow.plan.engine.base_rtt_ns == (4194 * 480 + 86 * 480 + 8'000'000) / 1000);
}

// Nothing is faster than the ideal, and alone in the fabric nothing is slower: the run agrees to
// the picosecond wherever the ACKs of earlier packets are out of the way.
TEST_CASE("ideal: a message alone takes exactly that long", "[ideal]") {
  Random random(11);
  for (int i = 0; i < 12; ++i) {
    config::Scenario s = leaf_spine(25 * (1 + random.below(20)));
    s.fabric.uplink_delay = picos_from_nanos(static_cast<std::int64_t>(1 + random.below(5000)));
    const std::uint64_t bytes = 1 + random.below(60'000);
    const auto dst = static_cast<std::uint32_t>(1 + random.below(7));
    CAPTURE(i, bytes, dst);
    const Yardstick y(s);
    VirtualWorld world(s, plan_of({{.src = 0, .dst = dst, .bytes = bytes}}), checked());
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.records()[0].completed == y.ideal().fct(0, dst, bytes));
  }
}

Picos ideal_of(const config::Scenario& s, MessagePlan plan) {
  const Yardstick y(s);
  plan.collectives = {{"one", Picos{0}}};
  y.ideal().fill(plan);
  return plan.collectives[0].ideal;
}

TEST_CASE("ideal: a collective is bound by its busiest port, in the core too", "[ideal]") {
  constexpr std::uint64_t kBytes = 1'000'000;
  const IdealClock bytes_of(quiet_star(2), 2);
  const auto wire = static_cast<std::int64_t>(bytes_of.wire_bytes(kBytes));
  const MessagePlan across = plan_of({{.src = 0, .dst = 4, .bytes = kBytes},
                                      {.src = 1, .dst = 5, .bytes = kBytes},
                                      {.src = 2, .dst = 6, .bytes = kBytes},
                                      {.src = 3, .dst = 7, .bytes = kBytes}});
  const auto latency = [](const config::Scenario& s) {
    return Yardstick(s).ideal().clock(0, 4).latency();
  };
  // Four hosts of 100 over two uplinks of 400, 200 and 50: 0.5, 1 and 4 times the hosts' time.
  for (const auto& [gbps, times_ps] : {std::pair{400, 80}, {200, 80}, {50, 2 * 160}}) {
    const config::Scenario s = leaf_spine(static_cast<std::uint64_t>(gbps));
    CHECK(ideal_of(s, across) == Picos{wire * times_ps} + latency(s));
  }
  // Within a leaf nothing crosses the core.
  const config::Scenario s = leaf_spine(50);
  const MessagePlan inside = plan_of({{.src = 0, .dst = 1, .bytes = kBytes}});
  CHECK(ideal_of(s, inside) == Picos{wire * 80} + Yardstick(s).ideal().clock(0, 1).latency());
}

TEST_CASE("ideal: an all-to-all over a three-tier tree with a 4:1 core", "[ideal]") {
  config::Scenario s = quiet_star(16);
  s.fabric.topology = "fat_tree";
  s.fabric.pods = 2;
  s.fabric.leaves = s.fabric.spines = 2;
  s.fabric.cores = 4;
  s.fabric.hosts_per_leaf = 4;
  s.fabric.switches = 12;
  s.fabric.uplink_rate = rate_from_gbps(200);
  s.fabric.oversubscription = 4;  // 8 hosts of 100 over four core links of 50 each pod
  MessagePlan plan;
  constexpr std::uint64_t kBytes = 100'000;
  for (std::uint32_t a = 0; a < 16; ++a) {
    for (std::uint32_t b = 0; b < 16; ++b) {
      if (a != b) plan.messages.push_back({.src = a, .dst = b, .bytes = kBytes});
    }
  }
  const auto wire = static_cast<std::int64_t>(IdealClock(s, 2).wire_bytes(kBytes));
  // 64 messages each way between the pods, over four links of 160 ps a byte.
  CHECK(ideal_of(s, plan) ==
        Picos{64 / 4 * wire * 160} + Yardstick(s).ideal().clock(0, 15).latency());
}

TEST_CASE("ideal: hosts of several rates on one switch", "[ideal]") {
  config::Scenario s = quiet_star(3);
  s.fabric.links = {{0, 3, rate_from_gbps(10), s.fabric.delay, 0},
                    {1, 3, rate_from_gbps(10), s.fabric.delay, 0},
                    {2, 3, rate_from_gbps(100), s.fabric.delay, 0}};
  MessagePlan plan = plan_of({{.src = 0, .dst = 2, .bytes = 1000},
                              {.src = 1, .dst = 2, .bytes = 1000},
                              {.src = 2, .dst = 0, .bytes = 500, .collective = 1}});
  plan.collectives = {{"one", Picos{0}}, {"two", Picos{0}}};
  const Yardstick y(s);
  y.ideal().fill(plan);
  // 1098 bytes at 10 Gb/s; 598 bytes at 10 Gb/s.
  CHECK(plan.collectives[0].ideal == Picos{1098 * 800} + y.ideal().clock(0, 2).latency());
  CHECK(plan.collectives[1].ideal == Picos{598 * 800} + y.ideal().clock(2, 0).latency());
}

}  // namespace
}  // namespace paceline
