// How hosts of a world connect: their queues, their numbers, and the source ports.

#include "dataplane/driver/virtual/world_connections.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>

#include "dataplane/fabric/wire/host_intake.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline::world_connections_test {
namespace {

using transport::QpAttributes;

constexpr std::uint32_t kPerLeaf = 4;
constexpr std::uint32_t kLanes = 16;
constexpr std::uint32_t kFirstQp = 16;

config::Scenario two_leaves(std::uint64_t seed) {
  config::Scenario s = quiet_star(2 * kPerLeaf);
  s.seed = seed;
  s.fabric.topology = "leaf_spine";
  s.fabric.leaves = 2;
  s.fabric.spines = 4;
  s.fabric.hosts_per_leaf = kPerLeaf;
  return s;
}

// Every host of the first leaf has connections to one host of the second, open from time 0.
MessagePlan across() {
  MessagePlan plan;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    for (std::uint32_t h = 0; h < kPerLeaf; ++h) {
      plan.messages.push_back({.src = h, .dst = h + kPerLeaf, .bytes = 1000, .lane = lane});
    }
  }
  plan.connected = true;
  return plan;
}

struct Opened {
  explicit Opened(const config::Scenario& s) : world(s, across(), checked()) {}

  QpAttributes sender(const PlannedMessage& m) const { return at(m.src, m.lane); }
  QpAttributes receiver(const PlannedMessage& m) const { return at(m.dst, m.lane); }
  QpAttributes at(std::uint32_t host, std::uint32_t lane) const {
    return world.engine(host).query_qp(kFirstQp + lane).value();
  }
  std::vector<std::uint16_t> ports() const {
    std::vector<std::uint16_t> ports;
    for (const PlannedMessage& m : across().messages) ports.push_back(sender(m).path.source_port);
    return ports;
  }

  VirtualWorld world;
};

// The link from the first leaf to the second spine.
std::uint32_t faulty_link(const config::Scenario& s) {
  const fabric::FabricSpec spec = plan_world(s).fabric;
  const auto link =
      std::find_if(spec.links.begin(), spec.links.end(), [&](const fabric::LinkSpec& l) {
        return l.a == spec.hosts && l.b == spec.hosts + s.fabric.leaves + 1;
      });
  REQUIRE(link != spec.links.end());
  return static_cast<std::uint32_t>(link - spec.links.begin());
}

config::Scenario colliding(std::uint64_t seed, double share, Picos at = Picos{0}) {
  config::Scenario s = two_leaves(seed);
  config::FaultConfig fault;
  fault.kind = "hash_collision";
  fault.links = {faulty_link(s)};
  fault.severity = share;
  fault.at = at;
  s.faults = {fault};
  return s;
}

// Connections that pass the link of the fault.
std::size_t passing(const config::Scenario& s) {
  const fabric::FabricSpec spec = plan_world(s).fabric;
  const fabric::Topology topology(spec);
  const std::uint32_t link = 2 * faulty_link(s);
  const std::uint32_t base = spec.subnet_base + 1;
  const Opened opened(s);
  const MessagePlan plan = across();
  return static_cast<std::size_t>(
      std::count_if(plan.messages.begin(), plan.messages.end(), [&](const PlannedMessage& m) {
        const auto links = topology.path(
            m.src, m.dst,
            fabric::entropy_of(base + m.src, base + m.dst, opened.sender(m).path.source_port));
        return std::find(links.begin(), links.end(), link) != links.end();
      }));
}

TEST_CASE("world connections: both ends know each other, and neither reads", "[connections]") {
  const Opened opened(two_leaves(7));
  for (const PlannedMessage& m : across().messages) {
    CAPTURE(m.src, m.lane);
    const QpAttributes a = opened.sender(m);
    const QpAttributes b = opened.receiver(m);
    CHECK(a.state == transport::QpState::rts);
    CHECK(b.state == transport::QpState::rts);
    CHECK(a.dest_qp_number == kFirstQp + m.lane);
    CHECK(b.dest_qp_number == kFirstQp + m.lane);
    CHECK(a.sq_psn == b.rq_psn);
    CHECK(b.sq_psn == a.rq_psn);
    CHECK(a.path.source_port == b.path.source_port);
    for (const QpAttributes& end : {a, b}) {
      CHECK(int{end.max_rd_atomic} == 0);
      CHECK(int{end.max_dest_rd_atomic} == 0);
    }
  }
}

TEST_CASE("world connections: ports are those of the seed, and of no other", "[connections]") {
  const std::vector<std::uint16_t> ports = Opened(two_leaves(7)).ports();
  CHECK(ports == Opened(two_leaves(7)).ports());
  CHECK(ports != Opened(two_leaves(8)).ports());
}

TEST_CASE("world connections: pinned ones take the planes by turns", "[connections]") {
  config::Scenario s = two_leaves(7);
  s.fabric.topology = "star";
  s.fabric.ports = 2;
  s.transport.planes = "pinned";
  const std::vector<std::uint16_t> ports = Opened(s).ports();
  for (std::size_t n = 0; n < ports.size(); ++n) {
    CAPTURE(n);
    CHECK(ports[n] % 2U == (n + 1) % 2);
  }
}

TEST_CASE("world connections: planned ports are those of the plan", "[connections]") {
  config::Scenario s = two_leaves(7);
  s.transport.source_ports = "planned";
  const Opened opened(s);
  const fabric::Network& network = opened.world.network();
  const PortPlan plan(across(), network.spec(), network.topology(), s.seed);
  for (const PlannedMessage& m : across().messages) {
    CHECK(opened.sender(m).path.source_port == plan.port_of(m).value());
  }
}

TEST_CASE("world connections: those that a fault has collide pass its link", "[connections]") {
  const std::size_t all = across().messages.size();
  CHECK(passing(colliding(7, 1)) == all);
  const std::size_t none = passing(colliding(7, 1, Picos{1}));  // they are open by then
  CHECK(none < all / 2);
  const std::size_t half = passing(colliding(7, 0.5));
  CHECK(half > none);
  CHECK(half < all);
}

TEST_CASE("world connections: a seed of a fault decides which collide", "[connections]") {
  const auto ports = [](std::uint64_t seed, std::uint64_t fault_seed) {
    config::Scenario s = colliding(seed, 0.5);
    s.faults.front().seed = fault_seed;
    return Opened(s).ports();
  };
  CHECK(ports(7, 3) == ports(7, 3));
  CHECK(ports(7, 3) != ports(7, 4));
  CHECK(ports(7, 3) != ports(7, 0));
}

}  // namespace
}  // namespace paceline::world_connections_test
