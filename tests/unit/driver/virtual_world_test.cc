// How a run begins and ends.

#include "dataplane/driver/virtual/virtual_world.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <vector>

#include "tests/unit/driver/driver_support.h"

namespace paceline {
namespace {

using Catch::Matchers::Contains;

TEST_CASE("virtual world: hosts that the fabric does not have are refused", "[virtual_world]") {
  const config::Scenario s = quiet_star(4);
  CHECK_THROWS_WITH(VirtualWorld(s, plan_of({{.src = 4, .dst = 0, .bytes = 1}})),
                    Contains("names a host"));
  CHECK_THROWS_WITH(VirtualWorld(s, plan_of({{.src = 0, .dst = 4, .bytes = 1}})),
                    Contains("names a host"));
  CHECK_THROWS_AS(VirtualWorld(s, plan_of({{.src = 0, .dst = 1, .bytes = 1, .after = 7}})),
                  std::logic_error);
}

TEST_CASE("virtual world: a scenario that cannot be built throws its reasons", "[virtual_world]") {
  config::Scenario s = quiet_star(4);
  s.cc.algorithm = "dcqnc";
  CHECK_THROWS_WITH(VirtualWorld(s, plan_of({})), Contains("unknown algorithm 'dcqnc'"));
}

TEST_CASE("virtual world: nothing to send is a completed run", "[virtual_world]") {
  VirtualWorld world(quiet_star(2), {});
  CHECK(world.run() == RunEnd::completed);
  CHECK(world.now().count == 0);
  CHECK(world.network().stats().hops == 0);
}

TEST_CASE("virtual world: messages that wait for each other stall, and that is said",
          "[virtual_world]") {
  VirtualWorld world(quiet_star(2), plan_of({{.src = 0, .dst = 1, .bytes = 10, .after = 1},
                                             {.src = 1, .dst = 0, .bytes = 10, .after = 0},
                                             {.src = 0, .dst = 1, .bytes = 10}}));
  CHECK(world.run() == RunEnd::stalled);
  CHECK(world.problem() == "no event is left, but 2 messages are outstanding");
  CHECK(world.messages_completed() == 1);
  CHECK(world.records()[0].ready.count < 0);
}

TEST_CASE("virtual world: a host to which others connect begins its own messages at their time",
          "[virtual_world]") {
  // Host 1 is connected to at 0 and hears nothing from the wire before 2 us.
  VirtualWorld world(quiet_star(3),
                     plan_of({{.src = 0, .dst = 1, .bytes = 4096},
                              {.src = 1, .dst = 2, .bytes = 4096, .start = Picos{1'234'567}}}));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.records()[1].ready == Picos{1'234'567});
}

TEST_CASE("virtual world: the stated duration ends a run at that very time", "[virtual_world]") {
  config::Scenario s = quiet_star(2);
  s.duration = picos_from_micros(50);
  VirtualWorld world(s, plan_of({{.src = 0, .dst = 1, .bytes = 4096},
                                 {.src = 0, .dst = 1, .bytes = 100'000'000}}));
  CHECK(world.run() == RunEnd::duration);
  CHECK(world.now() == picos_from_micros(50));
  CHECK(world.messages_completed() == 1);
  CHECK(world.records()[1].completed.count < 0);
  CHECK(world.problem().empty());
}

TEST_CASE("virtual world: max_hops and a stop from outside end a run unfinished",
          "[virtual_world]") {
  config::Scenario s = quiet_star(2);
  const MessagePlan plan = plan_of({{.src = 0, .dst = 1, .bytes = 400'000'000}});
  s.max_hops = 1000;
  VirtualWorld limited(s, plan);
  CHECK(limited.run() == RunEnd::hop_limit);
  CHECK(limited.problem() == "more than max_hops = 1000 packet-hops");
  CHECK(limited.network().stats().hops <= 1000 + 16);

  s.max_hops = 0;
  const std::atomic<bool> stop{true};
  WorldOptions options;
  options.stop = &stop;
  VirtualWorld stopped(s, plan, options);
  CHECK(stopped.run() == RunEnd::stopped);
  CHECK(stopped.messages_completed() == 0);
}

TEST_CASE("virtual world: samples come on time and change nothing", "[virtual_world]") {
  const config::Scenario s = quiet_star(3);
  const MessagePlan plan =
      plan_of({{.src = 0, .dst = 2, .bytes = 300'000}, {.src = 1, .dst = 2, .bytes = 300'000}});
  VirtualWorld plain(s, plan);
  REQUIRE(plain.run() == RunEnd::completed);
  std::vector<Picos> times;
  WorldOptions options;
  options.sample_interval = picos_from_micros(5);
  options.sample = [&times](const VirtualWorld& world, Picos at) {
    CHECK(world.now() == at);
    times.push_back(at);
  };
  VirtualWorld sampled(s, plan, options);
  REQUIRE(sampled.run() == RunEnd::completed);
  CHECK(sampled.trace_hash() == plain.trace_hash());
  REQUIRE(times.size() == static_cast<std::size_t>(plain.now().count / 5'000'000));
  for (std::size_t i = 0; i < times.size(); ++i) {
    CHECK(times[i] == picos_from_micros(5) * static_cast<std::int64_t>(i + 1));
  }
}

TEST_CASE("virtual world: every way to end has a name", "[virtual_world]") {
  for (const RunEnd end : {RunEnd::completed, RunEnd::duration, RunEnd::stalled, RunEnd::hop_limit,
                           RunEnd::stopped, RunEnd::violation}) {
    CHECK(std::string(to_string(end)) != "unknown");
  }
}

}  // namespace
}  // namespace paceline
