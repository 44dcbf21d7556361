// A world worked off in windows, node by node, is the world worked off event by event: random
// fabrics, algorithms and traffic both ways. tests/sim/parallel_test.cc does the same with chosen
// ones, and with several threads.

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/sim/random_world.h"
#include "tests/sim/sim_support.h"
#include "tools/workload/workload.h"

namespace paceline::simtest::sweep {
namespace {

// What a look at the whole fabric finds.
struct Look {
  Picos at{0};
  std::vector<std::uint64_t> queues;
  std::uint64_t marked = 0;
  Picos paused{0};
  std::uint64_t received = 0;
  bool operator==(const Look&) const = default;
};

struct Outcome {
  std::uint32_t restarts = 0;
  RunEnd end = RunEnd::completed;
  std::uint64_t hash = 0;
  std::uint64_t events = 0;
  std::uint64_t failed = 0;
  Picos now{0};
  fabric::NetworkStats stats;
  std::vector<std::optional<fabric::EgressStats>> egress;
  std::uint64_t retransmitted = 0;
  std::vector<Look> looks;
  std::uint64_t windows = 0;  // node by node
};

Outcome outcome(const config::Scenario& s, const MessagePlan& plan, bool sweep, Picos look_every) {
  Outcome out;
  WorldOptions options = checked();
  options.sweep = sweep;
  VirtualWorld* running = nullptr;
  if (look_every != kNever) {
    options.sample_interval = look_every;
    options.restart = [&] {
      ++out.restarts;
      out.looks.clear();
    };
    options.sample = [&](const VirtualWorld&, Picos at) {
      Look look;
      look.at = at;
      fabric::Network& network = running->network();
      for (std::uint32_t link = 0; link < network.links(); ++link) {
        look.queues.push_back(network.queue_bytes(link, at));
      }
      look.marked = network.stats().marked_packets;
      look.paused = network.pause_time(at);
      look.received = total_counters(*running).rx_data_bytes;
      out.looks.push_back(std::move(look));
    };
  }
  VirtualWorld world(s, plan, options);
  running = &world;
  out.end = world.run();
  out.hash = world.trace_hash();
  out.events = world.events();
  out.failed = world.messages_failed();
  out.now = world.now();
  out.stats = world.network().stats();
  for (std::uint32_t link = 0; link < world.network().links(); ++link) {
    out.egress.push_back(world.network().egress_stats(link));
  }
  out.retransmitted = total_counters(world).retransmitted_bytes;
  out.windows = world.thread_use().windows - world.thread_use().windows_alone;
  return out;
}

void check_same(const Outcome& swept, const Outcome& by_event) {
  CHECK(to_string(swept.end) == std::string(to_string(by_event.end)));
  CHECK(swept.hash == by_event.hash);
  CHECK(swept.events == by_event.events);
  CHECK(swept.failed == by_event.failed);
  CHECK(swept.now == by_event.now);
  CHECK((swept.stats == by_event.stats));
  CHECK((swept.egress == by_event.egress));
  CHECK(swept.retransmitted == by_event.retransmitted);
  CHECK((swept.looks == by_event.looks));
}

// How many worlds there were in which it was put to the test.
struct Tested {
  std::uint32_t windows = 0, pauses = 0, marks = 0, drops = 0, looks = 0;
};

Tested run_seeds(std::uint64_t first, std::uint64_t count) {
  Tested tested;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Random random(seed, 78);
    config::Scenario s = random_scenario(random, seed);
    s.fabric.reorder = 0;  // what is worked off event by event anyway
    s.fabric.drop_control_ppm = 0;
    s.max_hops = 0;
    const bool may_fail = s.fabric.loss > 0 || !s.fabric.pfc.enabled;
    const MessagePlan plan = random_plan(random, s, !may_fail);
    const Picos look_every = random.below(2) == 0 ? kNever : Picos{2'345'678};
    INFO("seed " << seed << "\n" << describe(s, plan));
    const Outcome by_event = outcome(s, plan, false, look_every);
    const Outcome swept = outcome(s, plan, true, look_every);
    CHECK(by_event.windows == 0);
    check_same(swept, by_event);
    if (swept.windows == 0) continue;
    ++tested.windows;
    tested.pauses += swept.stats.pause_frames != 0 ? 1 : 0;
    tested.marks += swept.stats.marked_packets != 0 ? 1 : 0;
    tested.drops += swept.stats.total_drops() != 0 ? 1 : 0;
    tested.looks += swept.looks.empty() ? 0 : 1;
  }
  return tested;
}

TEST_CASE("sweeps: random worlds, node by node and event by event", "[sweep]") {
  const Tested tested = run_seeds(1, 70);
  CHECK(tested.windows >= 30);
  CHECK(tested.pauses >= 5);
  CHECK(tested.marks >= 10);
  CHECK(tested.drops >= 10);
  CHECK(tested.looks >= 10);
}

TEST_CASE("sweeps: more random worlds", "[sweep][slow]") {
  const Tested tested = run_seeds(1'000, 300);
  CHECK(tested.windows >= 150);
  CHECK(tested.pauses >= 25);
}

// Nobody foresees when the last message fails: within a window, what other nodes did after it would
// count. The world is built anew and worked off event by event, and what was seen of it is void.
TEST_CASE("sweeps: a run that ends unforeseen begins anew", "[sweep]") {
  std::uint32_t restarts = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    const tools::PreparedScenario ready =
        prepared("seed = " + std::to_string(seed) + "\n" + kDcqcnPaper +
                 "[fabric]\ntopology = \"leaf_spine\"\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\n"
                 "loss = 0.3\n[transport]\nretransmit_timeout = \"20us\"\nretry_count = 1\n"
                 "[workload]\nkind = \"permutation\"\nmessage_bytes = \"300kB\"\n");
    const config::Scenario& s = ready.scenario;
    const auto planned = workload::make_plan(s, ready.inputs, s.seed);
    REQUIRE(planned.errors == std::vector<std::string>{});
    const MessagePlan& plan = planned.value;
    CAPTURE(seed);
    const Outcome by_event = outcome(s, plan, false, Picos{2'345'678});
    const Outcome swept = outcome(s, plan, true, Picos{2'345'678});
    CHECK(by_event.failed > 0);
    CHECK(by_event.restarts == 0);
    check_same(swept, by_event);
    restarts += swept.restarts;
  }
  CHECK(restarts > 0);
}

}  // namespace
}  // namespace paceline::simtest::sweep
