// Messages inside a server: when they arrive, who waits for them, and that the fabric sees nothing.
#include "dataplane/driver/traffic/nvlink.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/config/server_shape.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/driver/traffic/fabric_ideal.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline::nvlink_test {
namespace {

// 800 Gb/s: 10 ps a byte.
constexpr NvLinkSpec kSpec{rate_from_gbps(800), picos_from_nanos(500)};

config::Scenario servers_of_nics(std::uint32_t servers, std::uint32_t nics) {
  config::Scenario s = quiet_star(servers * nics);
  s.fabric.nics = nics;
  s.fabric.nvlink_rate = kSpec.rate;
  s.fabric.nvlink_latency = kSpec.latency;
  return s;
}

TEST_CASE("nvlink: a GPU sends one message after the other, GPUs do not wait for one another",
          "[nvlink]") {
  NvLink link(kSpec, 3);
  CHECK(link.send(Picos{0}, 0, 1000) == Picos{10'000 + 500'000});
  CHECK(link.send(Picos{4'000}, 0, 100) == Picos{11'000 + 500'000});  // behind the first
  CHECK(link.send(Picos{4'000}, 1, 100) == Picos{5'000 + 500'000});
  CHECK(link.send(Picos{50'000}, 0, 100) == Picos{51'000 + 500'000});  // free again
  CHECK(link.bytes_sent(0) == 1200);
  CHECK(link.bytes_sent(1) == 100);
  CHECK(link.bytes_sent(2) == 0);
}

TEST_CASE("nvlink: what stays in a server does not touch the fabric", "[nvlink]") {
  // Two servers of two: NICs 0 and 2 are one server's, 1 and 3 the other's.
  VirtualWorld world(servers_of_nics(2, 2),
                     plan_of({{.src = 0, .dst = 2, .bytes = 10'000},
                              {.src = 0, .dst = 2, .bytes = 5'000, .start = Picos{1'000}},
                              {.src = 2, .dst = 0, .bytes = 5'000, .after = 0},
                              {.src = 3, .dst = 1, .bytes = 1, .start = Picos{7}}}),
                     checked());
  REQUIRE(world.run() == RunEnd::completed);
  const auto& r = world.records();
  CHECK(r[0].completed == Picos{100'000 + 500'000});
  CHECK(r[1].ready == Picos{1'000});
  CHECK(r[1].completed == Picos{150'000 + 500'000});
  CHECK(r[2].ready == r[0].completed);
  CHECK(r[2].completed == r[0].completed + kSpec.transfer(5'000));
  CHECK(r[3].completed == Picos{7 + 10 + 500'000});
  CHECK(world.messages_completed() == 4);
  CHECK(world.network().stats().hops == 0);
  for (std::uint32_t nic = 0; nic < 4; ++nic) CHECK(queue_pairs(world, nic) == 0);
  CHECK(world.nvlink().bytes_sent(0) == 15'000);
}

TEST_CASE("nvlink: servers of one NIC have none", "[nvlink]") {
  config::Scenario s = servers_of_nics(4, 1);
  VirtualWorld world(s, plan_of({{.src = 0, .dst = 2, .bytes = 10'000}}), checked());
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.network().stats().hops > 0);
}

TEST_CASE("nvlink: a relayed message takes both its ways, one after the other", "[nvlink]") {
  const config::Scenario s = servers_of_nics(2, 2);
  VirtualWorld world(
      s,
      plan_of(
          {{.src = 0, .dst = 2, .bytes = 10'000, .start = Picos{123}},
           {.src = 2, .dst = 3, .bytes = 10'000, .start = Picos{123}, .after = 0, .relays = true}}),
      checked());
  REQUIRE(world.run() == RunEnd::completed);
  const auto& r = world.records();
  CHECK(r[1].ready == r[0].completed);
  const FabricIdeal ideal(s, world.network().spec(), world.network().topology());
  const MessagePlan& plan = world.plan();
  CHECK(r[1].completed - r[0].ready == ideal.fct(plan, plan.messages[1]));
  CHECK(ideal.fct(plan, plan.messages[0]) == kSpec.transfer(10'000));
}

TEST_CASE("nvlink: a collective is bound by the busiest GPU or by the busiest port", "[nvlink]") {
  // Two servers of three GPUs. GPU 0 sends 3 MB inside (30 us), and as much as `bytes` across.
  const auto ideal_of = [](std::uint64_t bytes) {
    config::Scenario s = servers_of_nics(2, 3);
    MessagePlan plan = plan_of({{.src = 0, .dst = 2, .bytes = 1'000'000},
                                {.src = 0, .dst = 4, .bytes = 2'000'000},
                                {.src = 2, .dst = 4, .bytes = 2'900'000},
                                {.src = 0, .dst = 1, .bytes = bytes}});
    plan.collectives = {{"one", Picos{0}}};
    VirtualWorld world(s, plan, checked());
    REQUIRE(world.run() == RunEnd::completed);
    const FabricIdeal ideal(s, world.network().spec(), world.network().topology());
    const Picos measured = std::max(
        {world.records()[1].completed, world.records()[2].completed, world.records()[3].completed});
    CHECK(world.plan().collectives[0].ideal <= measured);
    return std::pair(world.plan().collectives[0].ideal, ideal.clock(0, 1));
  };
  CHECK(ideal_of(1'000).first == kSpec.transfer(3'000'000));
  const auto [across, clock] = ideal_of(1'000'000);
  CHECK(across ==
        serialization_time(clock.wire_bytes(1'000'000), rate_from_gbps(100)) + clock.latency());
}

TEST_CASE("nvlink: several threads share a world, unless NVLink takes no time", "[nvlink]") {
  config::Scenario s = servers_of_nics(2, 2);
  s.fabric.topology = "leaf_spine";
  s.fabric.leaves = s.fabric.spines = 2;
  s.fabric.hosts_per_leaf = 2;
  WorldOptions options = checked();
  options.threads = 2;
  VirtualWorld inside(s, plan_of({{.src = 0, .dst = 2, .bytes = 10}}), options);
  CHECK(inside.one_thread_because().empty());
  s.fabric.nvlink_latency = Picos{0};
  VirtualWorld at_once(s, plan_of({{.src = 0, .dst = 2, .bytes = 10}}), options);
  CHECK_THAT(at_once.one_thread_because(), Catch::Contains("NVLink without latency"));
  VirtualWorld across(s, plan_of({{.src = 0, .dst = 1, .bytes = 10}}), options);
  CHECK(across.one_thread_because().empty());
}

// Random plans of three servers of four, half of the messages waiting for another: each waits long
// enough, GPUs are in order, and the same run gives the same result.
TEST_CASE("nvlink: random plans", "[nvlink]") {
  constexpr std::uint32_t kNics = 12;
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    config::Scenario s = servers_of_nics(3, 4);
    s.fabric.nvlink_rate = rate_from_gbps(50 + random.below(2000));
    s.fabric.nvlink_latency = picos_from_nanos(static_cast<std::int64_t>(1 + random.below(3000)));
    const NvLinkSpec spec{s.fabric.nvlink_rate, s.fabric.nvlink_latency};
    const config::ServerShape shape = config::server_shape(s.fabric);
    MessagePlan plan;
    for (std::uint32_t id = 0; id < 80; ++id) {
      PlannedMessage m{.src = static_cast<std::uint32_t>(random.below(kNics)),
                       .bytes = 1 + random.below(50'000),
                       .start = Picos{static_cast<std::int64_t>(random.below(20'000'000))}};
      if (id > 0 && random.below(2) == 0) {
        m.after = static_cast<std::uint32_t>(random.below(id));
        m.src = plan.messages[m.after].dst;
      }
      m.dst = (m.src + 1 + static_cast<std::uint32_t>(random.below(kNics - 1))) % kNics;
      plan.messages.push_back(m);
    }
    VirtualWorld world(s, plan, checked());
    REQUIRE(world.run() == RunEnd::completed);
    CHECK(world.messages_completed() == 80);
    std::vector<std::vector<std::uint32_t>> sent(kNics);
    std::uint64_t inside = 0;
    const auto& records = world.records();
    for (std::uint32_t id = 0; id < 80; ++id) {
      const PlannedMessage& m = world.plan().messages[id];
      CHECK(m.nvlink == shape.same_server(m.src, m.dst));
      CHECK(records[id].ready >= m.start);
      if (m.after != kNoMessage && world.plan().messages[m.after].nvlink) {
        CHECK(records[id].ready == later(m.start, records[m.after].completed));
      }
      if (!m.nvlink) continue;
      inside += m.bytes;
      sent[m.src].push_back(id);
    }
    std::uint64_t counted = 0;
    for (std::uint32_t gpu = 0; gpu < kNics; ++gpu) {
      counted += world.nvlink().bytes_sent(gpu);
      std::sort(sent[gpu].begin(), sent[gpu].end(), [&](std::uint32_t a, std::uint32_t b) {
        return records[a].completed < records[b].completed;
      });
      Picos free_at{0};
      for (const std::uint32_t id : sent[gpu]) {
        free_at = later(free_at, records[id].ready) +
                  serialization_time(world.plan().messages[id].bytes, spec.rate);
        CHECK(records[id].completed == free_at + spec.latency);
      }
    }
    CHECK(inside > 0);
    CHECK(counted == inside);
    VirtualWorld again(s, plan, checked());
    REQUIRE(again.run() == RunEnd::completed);
    CHECK(again.trace_hash() == world.trace_hash());
  }
}

}  // namespace
}  // namespace paceline::nvlink_test
