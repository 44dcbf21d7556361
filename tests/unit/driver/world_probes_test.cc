// Hosts of a scenario with [probing]: what they know of each other, against what is so.

#include "dataplane/driver/virtual/world_probes.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/unit/driver/driver_support.h"

namespace paceline {
namespace {

// Five hosts, three of which send to host 0; the clocks of hosts 1 and 2 change during the run.
config::Scenario probed(std::uint64_t seed) {
  config::Scenario s = quiet_star(5);
  s.seed = seed;
  s.cc.algorithm = "dcqcn";
  s.duration = picos_from_micros(2'500);
  s.probing.enabled = true;
  s.probing.share = 0.02;
  s.probing.paths = 2;
  s.probing.clock_offset = picos_from_micros(1'000);
  s.probing.clock_drift_ppm = 50;
  config::FaultConfig jump;
  jump.kind = "clock_jump";
  jump.links = {1};
  jump.at = picos_from_micros(1'000);
  jump.severity = -300;
  config::FaultConfig drift = jump;
  drift.kind = "clock_drift";
  drift.links = {2};
  drift.severity = 100;
  s.faults = {jump, drift};
  return s;
}

MessagePlan incast() {
  return plan_of({{.src = 1, .dst = 0, .bytes = 6'000'000},
                  {.src = 2, .dst = 0, .bytes = 6'000'000},
                  {.src = 3, .dst = 0, .bytes = 6'000'000}});
}

TEST_CASE("virtual world: hosts that probe know each other's clocks within 200 ns",
          "[virtual_world]") {
  for (const std::uint64_t seed : {1U, 2U}) {
    CAPTURE(seed);
    WorldOptions options = checked();
    options.threads = 2;
    VirtualWorld world(probed(seed), incast(), options);
    CHECK_THAT(world.one_thread_because(), Catch::Matchers::Contains("hosts that probe"));
    const RunEnd end = world.run();
    INFO(world.problem());
    REQUIRE((end == RunEnd::completed || end == RunEnd::duration));
    CHECK(world.engine(0).counters().rx_data_bytes > 10'000'000);
    const ProbeReport report = report_probes(world);
    REQUIRE(report.pairs.size() == 20);
    CHECK(report.totals.lost == 0);
    CHECK(report.totals.answered > 1'000);
    CHECK(report.there_ns.most > 10'000);   // there were queues
    CHECK(report.there_ns.most < 250'000);  // and no clock is taken for one
    double farthest = 0;
    for (const ProbedPair& pair : report.pairs) {
      CAPTURE(pair.from, pair.to, pair.offset_ns, pair.true_offset_ns, pair.drift_ppb,
              pair.true_drift_ppb);
      REQUIRE(pair.clock);
      farthest = std::max(farthest, std::abs(pair.true_offset_ns));
      CHECK((pair.restarts != 0) == (pair.from == 1 || pair.to == 1));
      // A clock that begins to run away is behind its line for a while.
      if (pair.from == 2 || pair.to == 2) continue;
      CHECK(std::abs(pair.offset_ns - pair.true_offset_ns) <= 200);
    }
    CHECK(farthest > 100'000);
    VirtualWorld again(probed(seed), incast());
    again.run();
    CHECK(again.trace_hash() == world.trace_hash());
  }
}

TEST_CASE("virtual world: who does not probe has no report", "[virtual_world]") {
  VirtualWorld world(quiet_star(2), plan_of({{.src = 0, .dst = 1, .bytes = 4096}}));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.probe(0) == nullptr);
  CHECK(report_probes(world).pairs.empty());
}

}  // namespace
}  // namespace paceline
