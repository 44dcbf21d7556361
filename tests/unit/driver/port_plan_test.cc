// Planned source ports: connections spread over equal paths, and end sooner than hashed ones.
#include "dataplane/driver/traffic/port_plan.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/fabric/wire/host_intake.h"
#include "dataplane/wire/headers/headers.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline::port_plan_test {
namespace {

constexpr std::uint32_t kHosts = 32;
constexpr std::uint32_t kBytes = 400'000;

config::Scenario four_leaves(std::uint64_t seed) {
  config::Scenario s = quiet_star(kHosts);
  s.seed = seed;
  s.fabric.topology = "leaf_spine";
  s.fabric.leaves = 4;
  s.fabric.spines = 8;
  s.fabric.hosts_per_leaf = 8;
  s.fabric.switches = 12;
  s.fabric.uplink_rate = rate_from_gbps(100);
  return s;
}

// Everybody sends to the host of the same number at the next leaf.
MessagePlan next_leaf() {
  MessagePlan plan;
  for (std::uint32_t h = 0; h < kHosts; ++h) {
    plan.messages.push_back({.src = h, .dst = (h + 8) % kHosts, .bytes = kBytes});
  }
  plan.connected = true;
  return plan;
}

// The most connections that share a link between switches.
template <class Port>
std::uint32_t most_on_a_link(const config::Scenario& s, const MessagePlan& plan, Port port) {
  const WorldPlan world = plan_world(s);
  const fabric::Topology topology(world.fabric);
  const std::uint32_t base = world.fabric.subnet_base + 1;
  std::map<std::uint32_t, std::uint32_t> on;
  std::uint32_t most = 0;
  for (const PlannedMessage& m : plan.messages) {
    const auto links =
        topology.path(m.src, m.dst, fabric::entropy_of(base + m.src, base + m.dst, port(m)));
    for (std::size_t i = 1; i + 1 < links.size(); ++i) most = std::max(most, ++on[links[i]]);
  }
  return most;
}

Picos last_end(config::Scenario s, const char* ports) {
  s.transport.source_ports = ports;
  VirtualWorld world(s, next_leaf(), checked());
  REQUIRE(world.run() == RunEnd::completed);
  Picos last{0};
  for (const MessageRecord& r : world.records()) last = later(last, r.completed);
  return last;
}

TEST_CASE("port plan: links between switches carry alike", "[ports]") {
  int worse = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const config::Scenario s = four_leaves(seed);
    const MessagePlan plan = next_leaf();
    const WorldPlan world = plan_world(s);
    const PortPlan ports(plan, world.fabric, fabric::Topology(world.fabric), seed);
    const auto planned = [&](const PlannedMessage& m) {
      const auto port = ports.port_of(m);
      REQUIRE(port.has_value());
      CHECK(*port >= wire::kFirstSourcePort);
      return *port;
    };
    // Eight connections of a leaf, eight spines.
    CHECK(most_on_a_link(s, plan, planned) <= 2);
    Random random(seed);
    const auto drawn = [&](const PlannedMessage&) {
      return wire::source_port_from_entropy(static_cast<std::uint32_t>(random.next()));
    };
    if (most_on_a_link(s, plan, drawn) >= 3) ++worse;
  }
  CHECK(worse >= 15);  // of ports that are drawn
}

TEST_CASE("port plan: a permutation ends sooner than with hashed ports", "[ports]") {
  for (const std::uint64_t seed : {3U, 4U, 5U}) {
    CAPTURE(seed);
    const config::Scenario s = four_leaves(seed);
    CHECK(static_cast<double>(last_end(s, "planned").count) <
          0.8 * static_cast<double>(last_end(s, "hash").count));
  }
}

TEST_CASE("port plan: the connection with the most bytes has a way for itself", "[ports]") {
  const config::Scenario s = four_leaves(1);
  MessagePlan plan = next_leaf();
  plan.messages[5].bytes = 100 * kBytes;
  const WorldPlan world = plan_world(s);
  const fabric::Topology topology(world.fabric);
  const PortPlan ports(plan, world.fabric, topology, 1);
  const std::uint32_t base = world.fabric.subnet_base + 1;
  const auto way = [&](const PlannedMessage& m) {
    const auto links = topology.path(
        m.src, m.dst, fabric::entropy_of(base + m.src, base + m.dst, ports.port_of(m).value()));
    return std::set<std::uint32_t>(links.begin() + 1, links.end() - 1);
  };
  const std::set<std::uint32_t> large = way(plan.messages[5]);
  for (std::uint32_t h = 0; h < kHosts; ++h) {
    if (h == 5) continue;
    for (const std::uint32_t link : way(plan.messages[h])) CHECK_FALSE(large.contains(link));
  }
  CHECK_FALSE(ports.port_of({.src = 5, .dst = 6}).has_value());
}

}  // namespace
}  // namespace paceline::port_plan_test
