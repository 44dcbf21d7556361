// What only the whole of a scenario shows to be wrong, and what is passed on.

#include "dataplane/driver/scenario/scenario_setup.h"

#include <catch2/catch.hpp>
#include <string>

#include "cc/registry.h"
#include "dataplane/driver/traffic/reachable.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline {
namespace {

using Catch::Matchers::Contains;

config::Scenario dcqcn() {
  config::Scenario s = quiet_star(4);
  s.cc.algorithm = "dcqcn";
  return s;
}

TEST_CASE("scenario setup: a sound scenario makes a plan", "[scenario_setup]") {
  config::Scenario s = dcqcn();
  s.transport.foreign_hosts = {1, 3};
  s.transport.peers = "discover";
  s.transport.retry_count = 5;
  s.fabric.drop_control_ppm = 1234;
  s.fabric.loss = 0.25;
  const WorldPlan plan = plan_world(s);
  REQUIRE(plan.error.empty());
  CHECK(plan.fabric.links.size() == 4);
  CHECK(plan.fabric.links[0].loss == 0.25);
  CHECK(plan.fabric.drop_control_ppm == 1234);
  CHECK(plan.speaks_control == std::vector<bool>{true, false, true, false});
  CHECK(plan.engine.peers == transport::PeerPolicy::discover);
  CHECK(plan.engine.primary.algorithm == cc::AlgorithmId::dcqcn);
  CHECK(plan.engine.primary.values.size() == cc::find("dcqcn")->params.size());
  // Round trip of a full packet and its ACK, rounded down to nanoseconds.
  CHECK(plan.engine.base_rtt_ns == (2 * 4194 * 80 + 2 * 86 * 80 + 4'000'000) / 1000);
  CHECK(plan.queue_pair.retry_count == 5);
}

TEST_CASE("scenario setup: base RTT follows the longest path", "[scenario_setup]") {
  // Two leaves under one spine, one host each: four links.
  config::Scenario s = dcqcn();
  s.fabric.hosts = 2;
  s.fabric.switches = 3;
  const auto link = [&s](std::uint32_t a, std::uint32_t b) {
    s.fabric.links.push_back({a, b, s.fabric.rate, s.fabric.delay, 0});
  };
  link(0, 2);
  link(1, 3);
  link(2, 4);
  link(3, 4);
  const WorldPlan plan = plan_world(s);
  REQUIRE(plan.error.empty());
  CHECK(plan.engine.base_rtt_ns == (4 * 4194 * 80 + 4 * 86 * 80 + 8'000'000) / 1000);
}

TEST_CASE("scenario setup: a fabric that cannot be built", "[scenario_setup]") {
  config::Scenario s = dcqcn();
  s.fabric.hosts = 3;
  s.fabric.switches = 2;
  const auto link = [&s](std::uint32_t a, std::uint32_t b) {
    s.fabric.links.push_back({a, b, s.fabric.rate, s.fabric.delay, 0});
  };
  link(0, 3);
  link(1, 3);
  link(2, 4);  // the switches are not linked
  // A message may still need no path.
  const WorldPlan parts = plan_world(s);
  REQUIRE(parts.error.empty());
  MessagePlan messages;
  messages.messages.push_back({.src = 0, .dst = 1, .bytes = 10});
  CHECK(no_path_of(s, parts.fabric, messages).empty());
  messages.messages.push_back({.src = 0, .dst = 2, .bytes = 20});
  CHECK_THAT(no_path_of(s, parts.fabric, messages),
             Contains("no path from host 0 to host 2") && Contains("20 B"));

  link(3, 4);
  CHECK(no_path_of(s, plan_world(s).fabric, messages).empty());

  link(2, 3);
  CHECK_THAT(plan_world(s).error, Contains("host 2 has 2 links"));

  config::Scenario small = dcqcn();
  small.fabric.buffer_bytes = 64 << 10;  // four ports' headroom alone is 150 kB
  CHECK_THAT(plan_world(small).error, Contains("leave nothing of a buffer"));
  small.fabric.pfc.enabled = false;
  CHECK(plan_world(small).error.empty());
}

TEST_CASE("scenario setup: congestion control by wrong names or values", "[scenario_setup]") {
  config::Scenario s = dcqcn();
  s.cc.algorithm = "cadense";
  CHECK_THAT(plan_world(s).error, Contains("'cadense'") && Contains("'cadence'"));

  s = dcqcn();
  s.cc.profile = "papper";
  CHECK_THAT(plan_world(s).error, Contains("papper") && Contains("paper"));

  s = dcqcn();
  s.cc.params = {{"additive_increase_mbp", 1}, {"min_rate_mbps", -1}};
  const std::string both = plan_world(s).error;  // every problem, not the first
  CHECK_THAT(both, Contains("additive_increase_mbps") && Contains("min_rate_mbps"));

  s = dcqcn();
  s.cc.fallback = "nothing";
  CHECK_THAT(plan_world(s).error, Contains("'nothing'"));
}

}  // namespace
}  // namespace paceline
