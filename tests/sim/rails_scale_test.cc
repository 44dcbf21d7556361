// Rails at the size of clusters, and a switch of 51.2 Tb/s: queues that stay empty, buffers that
// hold what pauses let through.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/fabric/topology/fabric_spec.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest::rails_scale {
namespace {

// The deepest queue of any switch port, in the largest packets.
double deepest_packets(const VirtualWorld& world) {
  std::uint64_t deepest = 0;
  for (std::uint32_t link = 0; link < world.network().links(); ++link) {
    const auto stats = world.network().egress_stats(link);
    if (stats) deepest = std::max(deepest, stats->max_bytes);
  }
  return static_cast<double>(deepest) /
         static_cast<double>(fabric::largest_packet(world.network().spec()));
}

void expect_no_queues(const std::vector<std::string>& overrides, std::uint64_t nics) {
  const tools::PreparedScenario p = prepared(shipped("rails-102400", overrides));
  auto plan = workload::make_plan(p.scenario, p.inputs, p.scenario.seed);
  REQUIRE(plan.ok());
  REQUIRE(plan.value.messages.size() == nics);
  VirtualWorld world(p.scenario, std::move(plan.value));
  REQUIRE(world.run() == RunEnd::completed);
  const fabric::NetworkStats stats = world.network().stats();
  CHECK(stats.marked_packets == 0);
  CHECK(stats.total_drops() == 0);
  CHECK(stats.pause_frames == 0);
  CHECK(deepest_packets(world) <= 2);
}

// 256 servers, leaves of 16 + 16 ports: the same arithmetic, quickly.
TEST_CASE("rails: a permutation and a ring within rails leave no queue", "[rails]") {
  for (const char* shift : {"16", "1", "128"}) {
    CAPTURE(shift);
    expect_no_queues({"fabric.servers=256", "fabric.hosts_per_leaf=16", "fabric.spines=16",
                      std::string("workload.shift=") + shift},
                     2'048);
  }
}

TEST_CASE("rails: 102,400 NICs, a permutation and a ring within rails", "[rails][slow]") {
  for (const char* shift : {"64", "1"}) {
    CAPTURE(shift);
    expect_no_queues({std::string("workload.shift=") + shift}, 102'400);
  }
}

TEST_CASE("rails: without cores a message to another rail is refused by name", "[rails]") {
  const tools::PreparedScenario p = prepared(shipped(
      "rails-102400", {"fabric.servers=64", "workload.per_rail=false", "workload.shift=1"}));
  CHECK_THROWS_WITH(
      tools::run_scenario(p, p.scenario.cc, 1, {}),
      Catch::Contains("no path from host 0 (server0.nic0) to host 64 (server0.nic1)") ||
          Catch::Contains("no path from host "));
}

// 127 x 400G into one port of a switch with 128. Each sender's port may hold its reserve, its part
// of the shared buffer (n ports that fill alike: a / (1 + n a) of it each), and headroom for what a
// pause still lets in: a round trip, a packet in front of the pause and one that has begun.
TEST_CASE("a switch of 51.2 Tb/s: an incast of 127 stays within buffer and headroom", "[rails]") {
  const tools::PreparedScenario p = prepared(kFixed + R"(
[fabric]
hosts = 128
rate = "400Gb/s"
delay = "500ns"
buffer = "64MiB"
ecn = { enabled = false }
[workload]
kind = "incast"
fan_in = 127
message_bytes = "1MB"
)");
  auto plan = workload::make_plan(p.scenario, p.inputs, 1);
  REQUIRE(plan.ok());
  VirtualWorld world(p.scenario, std::move(plan.value));
  REQUIRE(world.run() == RunEnd::completed);
  const fabric::FabricSpec& spec = world.network().spec();
  const fabric::NetworkStats stats = world.network().stats();
  CHECK(stats.total_drops() == 0);
  CHECK(stats.pause_frames >= 127);

  const double n = 127;
  const double alpha = spec.pfc.alpha;
  const double packet = fabric::largest_packet(spec);
  const auto headroom = static_cast<double>(fabric::headroom_of(spec, spec.links[0]));
  const auto reserve = static_cast<double>(spec.pfc.reserve_bytes);
  const double shared = static_cast<double>(spec.buffer_bytes) - 128 * (headroom + reserve);
  const double round_trip = 400e9 / 8 * 1e-6;
  const double let_in = round_trip + 3 * packet;
  CHECK(let_in < headroom);
  const double most = n * (reserve + alpha / (1 + n * alpha) * shared + let_in);
  const auto peak = static_cast<double>(world.network().egress_stats(1)->max_bytes);
  CAPTURE(most, peak, shared);
  CHECK(peak <= most);
  // The senders did fill their parts before they were paused.
  CHECK(peak >= n * alpha / (1 + n * alpha) * shared);
}

}  // namespace
}  // namespace paceline::simtest::rails_scale
