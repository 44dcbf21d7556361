// Worlds of several threads, small enough for the thread sanitizer. That any number of threads
// gives the same results is held by tests/sim/parallel_test.cc.

#include <catch2/catch.hpp>

#include "tests/unit/driver/driver_support.h"

namespace paceline::parallel_run_test {
namespace {

// Four leaves of two hosts, two spines; shallow buffers, so that PFC pauses across the parts.
config::Scenario shallow_leaf_spine() {
  config::Scenario s = quiet_star(8);
  s.fabric.topology = "leaf_spine";
  s.fabric.leaves = 4;
  s.fabric.spines = 2;
  s.fabric.hosts_per_leaf = 2;
  s.fabric.buffer_bytes = 300'000;
  s.fabric.pfc.headroom_bytes = 40'000;
  s.fabric.ecn.kmin_bytes = 10'000;
  s.fabric.ecn.kmax_bytes = 40'000;
  return s;
}

// Everybody to host 0, and back; `apart` between the starts.
MessagePlan to_and_fro(Picos apart) {
  MessagePlan plan;
  Picos start{0};
  for (std::uint32_t h = 1; h < 8; ++h, start += apart) {
    plan.messages.push_back({.src = h, .dst = 0, .bytes = 150'000, .start = start});
  }
  for (std::uint32_t h = 1; h < 8; ++h, start += apart) {
    plan.messages.push_back({.src = 0, .dst = h, .bytes = 50'000, .start = start});
  }
  return plan;
}

void check_same(const config::Scenario& s, const MessagePlan& plan, std::uint32_t threads) {
  VirtualWorld one(s, plan, checked());
  REQUIRE(one.run() == RunEnd::completed);
  CHECK(one.threads() == 1);
  WorldOptions options = checked();
  options.threads = threads;
  VirtualWorld many(s, plan, options);
  REQUIRE(many.run() == RunEnd::completed);
  CHECK(many.one_thread_because().empty());
  CHECK(many.threads() == threads);
  CHECK(many.thread_use().threads.size() == threads);
  CHECK(many.thread_use().windows > many.thread_use().windows_alone);
  CHECK(many.trace_hash() == one.trace_hash());
  CHECK(many.events() == one.events());
  CHECK(many.now() == one.now());
  CHECK((many.network().stats() == one.network().stats()));
}

TEST_CASE("parallel run: credits pass between parts", "[parallel][threads]") {
  config::Scenario s = shallow_leaf_spine();
  s.fabric.pfc.enabled = false;
  s.fabric.flow_control = "credit";
  s.fabric.buffer_bytes = 2'000'000;
  for (const std::uint64_t buffer : {0U, 9'000U}) {  // for line rate; for two packets
    s.fabric.credit.buffer_bytes = buffer;
    check_same(s, to_and_fro(Picos{0}), 2);
    check_same(s, to_and_fro(Picos{1'234'567}), 4);
  }
}

TEST_CASE("parallel run: two, three and four threads", "[parallel][threads]") {
  for (const std::uint32_t threads : {2U, 3U, 4U}) {
    CAPTURE(threads);
    check_same(shallow_leaf_spine(), to_and_fro(Picos{1'234'567}), threads);
  }
}

TEST_CASE("parallel run: a link that fails and returns while two threads run",
          "[parallel][threads]") {
  config::Scenario s = shallow_leaf_spine();
  s.transport.retransmit_timeout = picos_from_micros(100);
  s.fabric.reroute_delay = picos_from_micros(3);
  const auto event = [&s](std::int64_t us, const char* action) {
    config::EventConfig& e = s.events.emplace_back();
    e.at = picos_from_micros(us);
    e.links = {8 + 1};  // leaf 0, spine 1
    e.action = action;
  };
  event(15, "down");
  event(40, "up");
  check_same(s, to_and_fro(Picos{1'234'567}), 2);
}

TEST_CASE("parallel run: what cannot be foreseen sends the run to one thread",
          "[parallel][threads]") {
  // The second message opens a connection of its own when the first has arrived.
  const MessagePlan waiting = plan_of(
      {{.src = 0, .dst = 7, .bytes = 10'000}, {.src = 7, .dst = 0, .bytes = 10, .after = 0}});
  WorldOptions options = checked();
  options.threads = 2;
  VirtualWorld world(shallow_leaf_spine(), waiting, options);
  CHECK(world.threads() == 1);
  CHECK_THAT(world.one_thread_because(), Catch::Contains("wait for others"));
  CHECK(world.run() == RunEnd::completed);

  // The host is polled for the second message's lane as soon as the first has arrived, which is
  // before the third message's start, the time at which that lane was to be opened.
  const MessagePlan earlier =
      plan_of({{.src = 0, .dst = 7, .bytes = 10'000},
               {.src = 7, .dst = 0, .bytes = 10, .after = 0},
               {.src = 7, .dst = 0, .bytes = 100'000, .start = picos_from_micros(500)}});
  VirtualWorld one(shallow_leaf_spine(), earlier, checked());
  REQUIRE(one.run() == RunEnd::completed);
  VirtualWorld two(shallow_leaf_spine(), earlier, options);
  CHECK(two.threads() == 2);
  REQUIRE(two.run() == RunEnd::completed);
  CHECK_THAT(two.one_thread_because(), Catch::Contains("foreseen"));
  CHECK(two.threads() == 1);
  CHECK(two.trace_hash() == one.trace_hash());
}

TEST_CASE("parallel run: a stop from outside ends all threads", "[parallel][threads]") {
  const std::atomic<bool> stop{true};
  WorldOptions options;
  options.threads = 2;
  options.stop = &stop;
  VirtualWorld world(shallow_leaf_spine(), to_and_fro(Picos{1'234'567}), options);
  CHECK(world.run() == RunEnd::stopped);
}

}  // namespace
}  // namespace paceline::parallel_run_test
