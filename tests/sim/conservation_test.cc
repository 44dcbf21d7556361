// Random fabrics, random traffic, random trouble: whatever happens, nothing is lost that was not
// counted as lost, every message has an end, and the engines' books agree with the fabric's.

#include <catch2/catch.hpp>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "tests/sim/random_world.h"
#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

// Runs seeds [first, first + count) and reports how often trouble really came.
struct Trouble {
  std::uint32_t drops = 0, pauses = 0, marks = 0, retransmissions = 0, failed = 0, fallbacks = 0;
};

Trouble run_seeds(std::uint64_t first, std::uint64_t count) {
  Trouble trouble;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed, 77);
    const config::Scenario s = random_scenario(random, seed);
    // A message whose predecessor failed never begins: only where nothing can fail.
    const bool may_fail = s.fabric.loss > 0 || !s.fabric.pfc.enabled;
    const MessagePlan plan = random_plan(random, s, !may_fail);
    INFO(describe(s, plan));
    VirtualWorld world(s, plan, checked());
    const RunEnd end = world.run();
    CHECK(to_string(end) == std::string(to_string(RunEnd::completed)));
    CHECK(broken_law(world) == "");
    const telemetry::EngineCounters counters = total_counters(world);
    const fabric::NetworkStats& stats = world.network().stats();
    if (!may_fail) CHECK(world.messages_failed() == 0);
    if (s.fabric.pfc.enabled) {  // then the class of the data is lossless
      CHECK(stats.drops[static_cast<std::size_t>(fabric::DropReason::headroom_exhausted)] == 0);
    }
    trouble.drops += stats.total_drops() != 0 ? 1 : 0;
    trouble.pauses += stats.pause_frames != 0 ? 1 : 0;
    trouble.marks += stats.marked_packets != 0 ? 1 : 0;
    trouble.retransmissions += counters.retransmitted_packets != 0 ? 1 : 0;
    trouble.failed += world.messages_failed() != 0 ? 1 : 0;
    trouble.fallbacks += counters.fallbacks != 0 ? 1 : 0;
  }
  return trouble;
}

TEST_CASE("conservation: random scenarios keep every law", "[conservation]") {
  const Trouble trouble = run_seeds(1, 60);
  // Seeds that never get into trouble would test nothing.
  CHECK(trouble.drops >= 10);
  CHECK(trouble.pauses >= 5);
  CHECK(trouble.marks >= 10);
  CHECK(trouble.retransmissions >= 10);
  CHECK(trouble.fallbacks >= 2);
}

TEST_CASE("conservation: more random scenarios keep every law", "[conservation][slow]") {
  const Trouble trouble = run_seeds(1000, 300);
  CHECK(trouble.drops >= 50);
  CHECK(trouble.pauses >= 25);
}

// The same worlds under credits instead of pauses: no packet of the data is ever dropped by a
// switch, and messages end.
TEST_CASE("conservation: random scenarios under credits", "[conservation]") {
  std::uint32_t stalls = 0;
  std::uint32_t lossless = 0;
  for (std::uint64_t seed = 2'000; seed < 2'060; ++seed) {
    Random random(seed, 77);
    config::Scenario s = random_scenario(random, seed);
    s.fabric.pfc.enabled = false;
    s.fabric.flow_control = "credit";
    const std::uint64_t buffers[] = {0, 0, 6'500, 20'000};  // least: a packet and an update
    s.fabric.credit.buffer_bytes = buffers[random.below(4)];
    s.fabric.buffer_bytes += 64 * (3 * bytes_in(picos_from_micros(2), s.fabric.rate) + 64'000);
    const bool may_fail = s.fabric.loss > 0;
    const MessagePlan plan = random_plan(random, s, !may_fail);
    INFO(describe(s, plan));
    VirtualWorld world(s, plan, checked());
    CHECK(to_string(world.run()) == std::string(to_string(RunEnd::completed)));
    CHECK(broken_law(world) == "");
    const fabric::NetworkStats& stats = world.network().stats();
    CHECK(stats.pause_frames == 0);
    CHECK(stats.drops[static_cast<std::size_t>(fabric::DropReason::headroom_exhausted)] == 0);
    if (!may_fail) CHECK(world.messages_failed() == 0);
    stalls += stats.pause_time > Picos{0} ? 1 : 0;
    lossless += may_fail ? 0 : 1;
  }
  CHECK(stalls >= 20);
  CHECK(lossless >= 20);
}

}  // namespace
}  // namespace paceline::simtest
