// What held back the senders of a collective.
#include "dataplane/driver/traffic/sender_limits.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "tests/unit/driver/driver_support.h"

namespace paceline {
namespace {

TEST_CASE("sender limits: a collective has what passed while its messages were under way",
          "[limits]") {
  SenderLimits limits;
  limits.begin(7, {10, 20, 0, 0, 0, 0, 0});
  limits.begin(8, {10, 25, 0, 0, 0, 0, 0});
  limits.end(7, 3, {12, 50, 0, 1, 0, 0, 0});
  CHECK(limits.by_collective().at(3) == SenderLimits::Times{2, 30, 0, 1, 0, 0, 0});
  limits.end(8, 3, {12, 26, 0, 1, 0, 0, 0});
  CHECK(limits.by_collective().at(3) == SenderLimits::Times{4, 31, 0, 2, 0, 0, 0});
  limits.end(9, 5, {99, 99, 99, 99, 99, 99, 99});  // never began
  CHECK(limits.by_collective().size() == 1);
  limits.begin(10, {50, 50, 50, 50, 50, 50, 50});
  limits.end(10, 4, {1, 60, 0, 0, 0, 0, 0});  // with a new context
  CHECK(limits.by_collective().at(4) == SenderLimits::Times{0, 10, 0, 0, 0, 0, 0});
}

// One message at a time: whatever held it back, the times add up to the time that it took.
TEST_CASE("sender limits: the times of a message add up", "[limits]") {
  MessagePlan plan = plan_of({{.src = 0, .dst = 1, .bytes = 1'000'000, .collective = 0},
                              {.src = 0, .dst = 1, .bytes = 3'000'000, .after = 0, .collective = 1},
                              {.src = 0, .dst = 1, .bytes = 500'000, .after = 1, .collective = 1}});
  plan.collectives.resize(2);
  config::Scenario s = quiet_star(2);
  const auto algorithm = GENERATE("fixed", "dcqcn", "cadence");
  s.cc.algorithm = algorithm;
  CAPTURE(algorithm);
  VirtualWorld plain(s, plan, checked());
  REQUIRE(plain.run() == RunEnd::completed);
  CHECK(plain.app(0).limits() == nullptr);
  plan.limits = true;
  VirtualWorld world(s, plan, checked());
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.trace_hash() == plain.trace_hash());
  REQUIRE(world.app(0).limits() != nullptr);
  CHECK(world.app(1).limits()->by_collective().empty());
  const auto& sums = world.app(0).limits()->by_collective();
  const auto took = [&world](std::uint32_t id) {
    return (world.records()[id].completed - world.records()[id].ready).count;
  };
  const auto sum = [&sums](std::uint32_t collective) {
    const SenderLimits::Times& times = sums.at(collective);
    return std::accumulate(times.begin(), times.end(), std::int64_t{0});
  };
  REQUIRE(sums.size() == 2);
  CHECK(sum(0) == took(0));
  CHECK(sum(1) == took(1) + took(2));
}

}  // namespace
}  // namespace paceline
