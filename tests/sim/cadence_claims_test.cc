// What Cadence claims: a short queue without drops or pauses, survival of its control packets'
// loss, and peace with peers that do not speak it.

#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

using experiment::Metric;
using fabric::DropReason;

std::uint64_t drops(const fabric::NetworkStats& stats, DropReason reason) {
  return stats.drops[static_cast<std::size_t>(reason)];
}

const std::string kBigIncast = incast(1, 32, "10MB");

TEST_CASE("cadence claims: a 32-to-1 incast of 10 MB has a short queue, no drop and no pause",
          "[cadence_claims]") {
  const tools::ScenarioRun cadence = run(kCadence + kBigIncast);
  REQUIRE(cadence.result.reason == "");
  REQUIRE(cadence.end == RunEnd::completed);
  CHECK(cadence.network.total_drops() == 0);
  CHECK(cadence.network.pause_frames == 0);
  CHECK(cadence.network.pause_time.count == 0);

  // What may stand in the queue: the packets that every sender starts with before it is granted
  // anything (one full packet each: 32 x 4178 bytes) and as much again for grants that change under
  // way, i.e. 268 kB; the base BDP of this star is 58 kB.
  const double peak = cadence.result.metrics[Metric::queue_max_bytes];
  CHECK(peak > 0);
  CHECK(peak <= 2 * 32 * 4178);

  const tools::ScenarioRun dcqcn = run(kDcqcnPaper + kBigIncast);
  REQUIRE(dcqcn.end == RunEnd::completed);
  CHECK(peak <= 0.05 * dcqcn.result.metrics[Metric::queue_max_bytes]);
  CHECK(cadence.result.metrics[Metric::collective_efficiency] >
        dcqcn.result.metrics[Metric::collective_efficiency]);
  CHECK(cadence.result.metrics[Metric::jain_fairness] > 0.99);
}

TEST_CASE("cadence claims: with 30 % of the control packets lost all still completes",
          "[cadence_claims]") {
  const std::string incast_of_16 = incast(3, 16, "2MB");
  const std::string moe = R"(
seed = 3
[fabric]
hosts = 16
[workload]
kind = "all_to_all"
message_bytes = "200kB"
skew = 1.0
start_jitter = "20us"
)";
  for (const std::string& workload : {incast_of_16, moe}) {
    CAPTURE(workload);
    const tools::ScenarioRun clean = run(kCadence + workload);
    const tools::ScenarioRun lossy = run(kCadence + workload, {"fabric.drop_control_ppm=300000"});
    REQUIRE(clean.result.reason == "");
    REQUIRE(lossy.result.reason == "");  // every invariant held at every step
    REQUIRE(lossy.end == RunEnd::completed);
    CHECK(lossy.result.messages_completed == lossy.flows.size());
    CHECK(drops(lossy.network, DropReason::control_loss) > 0);
    CHECK(drops(clean.network, DropReason::control_loss) == 0);
    // No data is lost for it: what a sender may send is bounded by what the receiver planned.
    CHECK(lossy.network.total_drops() == drops(lossy.network, DropReason::control_loss));
    CHECK(lossy.network.pause_frames == 0);
    // A lost GRANT or REQUEST costs the round trips until it is repeated, at full speed of those
    // whose messages arrived; leases outlive several losses in a row (0.3^4 < 1 %). Half of the
    // efficiency without loss is what a design that waited for a timeout would not reach.
    CHECK(lossy.result.metrics[Metric::collective_efficiency] >
          0.5 * clean.result.metrics[Metric::collective_efficiency]);
  }
}

const std::string kMixed = R"(
seed = 5
[fabric]
hosts = 9
[workload]
kind = "all_to_all"
message_bytes = "200kB"
start_jitter = "5us"
)";

TEST_CASE("cadence claims: where no peer speaks it the fallback does everything",
          "[cadence_claims]") {
  const tools::ScenarioRun roce = run(kCadence + kMixed, {"transport.peers=roce"});
  REQUIRE(roce.result.reason == "");
  REQUIRE(roce.end == RunEnd::completed);
  CHECK(roce.counters.hellos_sent == 0);
  CHECK(roce.counters.requests_sent == 0);
  CHECK(roce.counters.grants_sent == 0);
  // Pure: the very run of the fallback alone.
  const tools::ScenarioRun dcqcn = run(kDcqcnPaper + kMixed, {"transport.peers=roce"});
  CHECK(roce.result.trace_hash == dcqcn.result.trace_hash);
}

TEST_CASE("cadence claims: found out by HELLO, native hosts use it and foreign ones do not",
          "[cadence_claims]") {
  const tools::PreparedScenario p =
      prepared(kCadence + kMixed, {"transport.peers=discover", "transport.foreign_hosts=[0, 4]"});
  auto plan = workload::make_plan(p.scenario, p.inputs, p.scenario.seed);
  REQUIRE(plan.ok());
  VirtualWorld world(p.scenario, plan.value, checked());
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(broken_law(world) == "");
  CHECK(world.messages_failed() == 0);
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    CAPTURE(h);
    const telemetry::EngineCounters& c = world.engine(h).counters();
    CHECK(c.hellos_sent + c.control_ignored > 0);
    if (h == 0 || h == 4) {
      CHECK(c.grants_sent == 0);
      CHECK(c.grants_received == 0);
      CHECK(c.requests_sent == 0);
    } else {
      CHECK(c.grants_sent > 0);
      CHECK(c.grants_received > 0);
    }
  }

  // An incast into a foreign host: nobody is granted anything, DCQCN brings it home.
  const tools::ScenarioRun incast =
      run(kCadence +
              "seed = 5\n[fabric]\nhosts = 9\n[workload]\nkind = \"incast\"\nfan_in = 8\n"
              "message_bytes = \"2MB\"\n",
          {"transport.peers=discover", "transport.foreign_hosts=[0]"});
  REQUIRE(incast.end == RunEnd::completed);
  CHECK(incast.result.messages_completed == 8);
  CHECK(incast.counters.grants_received == 0);
  CHECK(incast.counters.cnps_received > 0);
}

TEST_CASE("cadence claims: taken for native, a foreign receiver is found out", "[cadence_claims]") {
  const tools::ScenarioRun incast =
      run(kCadence +
              "seed = 5\n[fabric]\nhosts = 9\n[workload]\nkind = \"incast\"\nfan_in = 8\n"
              "message_bytes = \"2MB\"\n",
          {"transport.peers=paceline", "transport.foreign_hosts=[0]"});
  REQUIRE(incast.result.reason == "");
  REQUIRE(incast.end == RunEnd::completed);
  CHECK(incast.result.messages_completed == 8);
  CHECK(incast.counters.fallbacks == 8);  // one channel each
  CHECK(incast.counters.grants_received == 0);
  CHECK(incast.counters.control_ignored > 0);
}

}  // namespace
}  // namespace paceline::simtest
