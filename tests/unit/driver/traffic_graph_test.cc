// What waits for several others, for what its own host sends, and for computing.
#include <algorithm>
#include <catch2/catch.hpp>
#include <stdexcept>
#include <string>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline::traffic_graph_test {
namespace {

constexpr PlannedMessage kNothing{};

PlannedMessage compute(std::uint32_t host, std::int64_t picos, std::uint32_t after = kNoMessage) {
  PlannedMessage m = kNothing;
  m.src = m.dst = host;
  m.after = after;
  m.gap = Picos{picos};
  m.computes = true;
  return m;
}

TEST_CASE("traffic graph: a host computes, then sends", "[graph]") {
  VirtualWorld world(quiet_star(2),
                     plan_of({compute(0, 5'000'000),
                              compute(0, 1'000'000, 0),
                              {.src = 0, .dst = 1, .bytes = 4096, .after = 1},
                              {.src = 1, .dst = 0, .bytes = 4096, .after = 2}}),
                     checked());
  REQUIRE(world.run() == RunEnd::completed);
  const auto& r = world.records();
  CHECK(r[0].ready == Picos{0});
  CHECK(r[0].completed == Picos{5'000'000});
  CHECK(r[1].ready == Picos{5'000'000});
  CHECK(r[1].completed == Picos{6'000'000});
  CHECK(r[2].ready == Picos{6'000'000});
  CHECK(r[3].ready == Picos{6'000'000 + kArrivalPs});
}

TEST_CASE("traffic graph: a message waits for its sender's own message until it is complete",
          "[graph]") {
  VirtualWorld world(quiet_star(3),
                     plan_of({{.src = 0, .dst = 1, .bytes = 4096},
                              {.src = 0, .dst = 2, .bytes = 4096, .after = 0},
                              {.src = 1, .dst = 2, .bytes = 4096, .after = 0}}),
                     checked());
  REQUIRE(world.run() == RunEnd::completed);
  const auto& r = world.records();
  CHECK(r[1].ready == r[0].completed);
  CHECK(r[0].completed == Picos{kArrivalPs + kAckPs});
  CHECK(r[2].ready == Picos{kArrivalPs});
}

TEST_CASE("traffic graph: a join waits for all, in whatever order they come", "[graph]") {
  for (const std::int64_t late : {0, 7'000'000, 90'000'000}) {
    CAPTURE(late);
    MessagePlan plan = plan_of({{.src = 1, .dst = 0, .bytes = 4096},
                                {.src = 2, .dst = 0, .bytes = 4096, .start = Picos{30'000'000}},
                                {.src = 0, .dst = 3, .bytes = 64},
                                compute(0, late),
                                compute(0, 0),
                                {.src = 0, .dst = 3, .bytes = 4096, .gap = Picos{11}}});
    plan.joins = {{4, 0}, {4, 1}, {4, 2}, {4, 3}, {5, 4}};
    VirtualWorld world(quiet_star(4), plan, checked());
    REQUIRE(world.run() == RunEnd::completed);
    const auto& r = world.records();
    CHECK(r[4].ready == later(Picos{30'000'000 + kArrivalPs}, Picos{late}));
    CHECK(r[4].completed == r[4].ready);
    CHECK(r[5].ready == r[4].completed + Picos{11});
  }
}

TEST_CASE("traffic graph: a join of NVLink and the network waits for the later one", "[graph]") {
  config::Scenario s = quiet_star(4);  // servers {0, 2} and {1, 3}
  s.fabric.nics = 2;
  s.fabric.nvlink_rate = rate_from_gbps(800);
  s.fabric.nvlink_latency = picos_from_nanos(500);
  for (const std::uint64_t inside : {100U, 10'000'000U}) {
    MessagePlan plan = plan_of({{.src = 2, .dst = 0, .bytes = inside},
                                {.src = 1, .dst = 0, .bytes = 4096},
                                {.src = 0, .dst = 1, .bytes = 64, .after = 0}});
    plan.joins = {{2, 1}};
    VirtualWorld world(s, plan, checked());
    REQUIRE(world.run() == RunEnd::completed);
    const Picos by_nvlink{static_cast<std::int64_t>(inside) * 10 + 500'000};
    CHECK(world.records()[2].ready == later(by_nvlink, Picos{kArrivalPs}));
  }
}

TEST_CASE("traffic graph: waiting for what no other host tells is refused", "[graph]") {
  const MessagePlan plan =
      plan_of({{.src = 0, .dst = 1, .bytes = 1}, {.src = 2, .dst = 1, .bytes = 1, .after = 0}});
  CHECK_THROWS_WITH(VirtualWorld(quiet_star(3), plan),
                    Catch::Contains("host 2 waits for one from host 0 to host 1"));
}

// Layers of random messages and computing, each waiting for some of the layer before.
MessagePlan random_graph(std::uint64_t seed, std::uint32_t hosts) {
  Random random(seed);
  MessagePlan plan;
  std::vector<std::vector<std::uint32_t>> known(hosts);  // what each host can wait for
  for (std::uint32_t layer = 0; layer < 6; ++layer) {
    const auto before = known;
    for (std::uint32_t n = 0; n < 2 * hosts; ++n) {
      const auto src = static_cast<std::uint32_t>(random.below(hosts));
      auto dst = static_cast<std::uint32_t>(random.below(hosts));
      const auto id = static_cast<std::uint32_t>(plan.messages.size());
      PlannedMessage m =
          dst == src ? compute(src, static_cast<std::int64_t>(random.below(2'000'000))) : kNothing;
      m.src = src;
      m.dst = dst;
      if (dst != src) m.bytes = 1 + random.below(20'000);
      std::vector<std::uint32_t> waits = before[src];
      while (waits.size() > 3)
        waits.erase(waits.begin() + static_cast<long>(random.below(waits.size())));
      for (const std::uint32_t on : waits) {
        if (m.after == kNoMessage && random.below(2) == 0) {
          m.after = on;
        } else {
          plan.joins.push_back({id, on});
        }
      }
      plan.messages.push_back(m);
      known[src].push_back(id);
      if (dst != src) known[dst].push_back(id);
    }
  }
  std::sort(plan.joins.begin(), plan.joins.end());
  return plan;
}

TEST_CASE("traffic graph: nothing begins before what it waits for, and at once after", "[graph]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const MessagePlan plan = random_graph(seed, 6);
    VirtualWorld world(quiet_star(6), plan, checked());
    REQUIRE(world.run() == RunEnd::completed);
    const auto& r = world.records();
    std::vector<Picos> known(plan.messages.size(), Picos{-1});  // the last completion waited for
    std::vector<bool> by_arrival(plan.messages.size());
    const auto wait = [&](std::uint32_t id, std::uint32_t on) {
      const bool own = plan.messages[on].src == plan.messages[id].src;
      if (own) {
        CHECK(r[id].ready >= r[on].completed);
        known[id] = later(known[id], r[on].completed);
      } else {
        CHECK(r[id].ready > r[on].ready);
        by_arrival[id] = true;
      }
    };
    for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
      if (plan.messages[id].after != kNoMessage) wait(id, plan.messages[id].after);
    }
    for (const Join& join : plan.joins) wait(join.message, join.after);
    for (std::uint32_t id = 0; id < plan.messages.size(); ++id) {
      if (!by_arrival[id]) CHECK(r[id].ready == later(known[id], Picos{0}));
    }
  }
}

void check_same_however_run(const config::Scenario& s, const MessagePlan& plan) {
  std::vector<std::uint64_t> hashes;
  for (const auto& [threads, sweep] : {std::pair{1U, false}, {1U, true}, {2U, false}, {2U, true}}) {
    CAPTURE(threads, sweep);
    WorldOptions options = checked();
    options.threads = threads;
    options.sweep = sweep;
    VirtualWorld world(s, plan, std::move(options));
    CHECK(world.one_thread_because().empty());
    REQUIRE(world.run() == RunEnd::completed);
    hashes.push_back(world.trace_hash());
  }
  for (const std::uint64_t hash : hashes) CHECK(hash == hashes[0]);
}

TEST_CASE("traffic graph: connected beforehand, several threads give the same",
          "[graph][threads]") {
  config::Scenario s = quiet_star(8);
  s.fabric.topology = "leaf_spine";
  s.fabric.leaves = 4;
  s.fabric.spines = 2;
  s.fabric.hosts_per_leaf = 2;
  const auto nics = GENERATE(1U, 2U, 4U);
  s.fabric.nics = nics;
  s.fabric.nvlink_rate = rate_from_gbps(800);
  for (const std::int64_t latency : {100, 500, 3000}) {
    s.fabric.nvlink_latency = picos_from_nanos(latency);
    for (std::uint64_t seed = 1; seed <= 5; ++seed) {
      CAPTURE(nics, latency, seed);
      MessagePlan plan = random_graph(seed, 8);
      plan.connected = true;
      check_same_however_run(s, plan);
    }
  }
}

}  // namespace
}  // namespace paceline::traffic_graph_test
