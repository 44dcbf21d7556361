// What faults do to links, and that it ends.

#include <catch2/catch.hpp>

#include "dataplane/config/fault_kinds.h"
#include "dataplane/driver/scenario/fault_events.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/port_plan.h"
#include "dataplane/fabric/wire/host_intake.h"

namespace paceline {
namespace {

using fabric::LinkAction;

config::Scenario leaves() {
  config::Scenario scenario;
  scenario.fabric.topology = "leaf_spine";
  scenario.fabric.leaves = scenario.fabric.spines = 2;
  scenario.fabric.hosts_per_leaf = 2;
  scenario.fabric.hosts = 4;
  scenario.fabric.switches = 4;
  return scenario;
}

config::FaultConfig fault(const char* kind, std::uint32_t link, double severity) {
  config::FaultConfig out;
  out.kind = kind;
  out.links = {link};
  out.severity = severity;
  out.at = picos_from_micros(10);
  out.lasts = picos_from_micros(20);
  return out;
}

TEST_CASE("a fault changes its link and puts it back as it was built", "[driver]") {
  const fabric::FabricSpec spec = fabric_of(leaves());
  const auto nic = fault_events(fault("slow_nic", 1, 4), spec);
  REQUIRE(nic.size() == 2);
  CHECK(nic[0].action == LinkAction::rate);
  CHECK(nic[0].rate.bps == spec.links[1].rate.bps / 4);
  CHECK(nic[1].rate.bps == spec.links[1].rate.bps);
  CHECK(nic[1].at == picos_from_micros(30));
  const auto path = fault_events(fault("bad_path", 4, 5), spec);
  REQUIRE(path.size() == 2);
  CHECK(path[0].delay == spec.links[4].delay + picos_from_micros(5));
  CHECK(path[1].delay == spec.links[4].delay);
  config::FaultConfig lossy = fault("lossy_link", 4, 0.5);
  lossy.lasts = kNever;
  lossy.direction = "down";
  const auto loss = fault_events(lossy, spec);
  REQUIRE(loss.size() == 1);
  CHECK(loss[0].probability == 0.5);
  CHECK(loss[0].directions == 2);
}

TEST_CASE("a flapping port is down for a tenth of each period", "[driver]") {
  const fabric::FabricSpec spec = fabric_of(leaves());
  const auto flaps = fault_events(fault("flapping_port", 0, 100'000), spec);
  REQUIRE(flaps.size() == 2);
  CHECK(flaps[0].action == LinkAction::down);
  CHECK(flaps[1].action == LinkAction::up);
  CHECK(flaps[1].at - flaps[0].at == picos_from_micros(1));
  CHECK(flaps[0].every == picos_from_micros(10));
  CHECK(flaps[1].every == picos_from_micros(10));
  CHECK(flaps[0].until == picos_from_micros(30));
  CHECK(flaps[1].until == picos_from_micros(31));  // whatever went down comes back
}

TEST_CASE("a switch without ECN does not mark what leaves it", "[driver]") {
  const fabric::FabricSpec spec = fabric_of(leaves());
  config::FaultConfig off = fault("ecn_off", 0, 0);
  off.links = {0, 1, 4, 5};  // all of leaf 0
  off.lasts = kNever;
  const auto events = fault_events(off, spec);
  REQUIRE(events.size() == 4);
  for (const fabric::LinkEvent& event : events) {
    CHECK(event.action == LinkAction::mark_off);
    // Towards hosts it is the second end that sends, towards spines the first.
    CHECK(event.directions == (event.link < 2 ? 2 : 1));
  }
}

TEST_CASE("a NIC behind a narrow PCIe link sends slowly, and looks at what waits until the end",
          "[driver]") {
  const fabric::FabricSpec spec = fabric_of(leaves());
  const auto events = fault_events(fault("pcie_limit", 1, 4), spec);
  REQUIRE(events.size() == 4);
  CHECK(events[0].action == LinkAction::rate);
  CHECK(events[0].directions == 1);
  CHECK(events[0].rate.bps == spec.links[1].rate.bps / 4);
  CHECK(events[2].action == LinkAction::take);
  CHECK(events[2].at == picos_from_micros(10));
  CHECK(events[2].every == picos_from_micros(5));
  CHECK(events[2].until == picos_from_micros(30));
  CHECK(events[2].rate.bps == spec.links[1].rate.bps / 4);
  CHECK(events[3].at == picos_from_micros(30));
  CHECK(events[3].rate.bps == 0);
  CHECK(fault_events(fault("slow_receiver", 1, 4), spec).size() == 2);
}

TEST_CASE("a storm pauses for a share of every 100 us, and ends", "[driver]") {
  config::FaultConfig storm = fault("pfc_storm", 0, 0.9);
  storm.lasts = picos_from_micros(250);
  const auto events = fault_events(storm, fabric_of(leaves()));
  REQUIRE(events.size() == 3);
  CHECK(events[0].action == LinkAction::pause);
  CHECK(events[0].every == picos_from_micros(100));
  CHECK(events[1].action == LinkAction::resume);
  CHECK(events[1].at == picos_from_micros(100));
  CHECK(events[1].every == picos_from_micros(100));
  CHECK(events[2].action == LinkAction::resume);
  CHECK(events[2].at == picos_from_micros(260));
  CHECK(events[2].every == Picos{0});
  storm.severity = 1;
  const auto whole = fault_events(storm, fabric_of(leaves()));
  REQUIRE(whole.size() == 2);
  CHECK(whole[1].action == LinkAction::resume);
  CHECK(whole[1].at == picos_from_micros(260));
  storm.lasts = kNever;
  CHECK(fault_events(storm, fabric_of(leaves())).size() == 1);
}

TEST_CASE("links that are slow are looked at less often", "[driver]") {
  CHECK(config::intake_every(rate_from_gbps(400)) == picos_from_micros(5));
  CHECK(config::intake_every(rate_from_gbps(10)) == picos_from_micros(5));
  CHECK(config::intake_every(rate_from_mbps(500)) == picos_from_micros(100));
  CHECK(config::storm_every(rate_from_mbps(500)) == picos_from_micros(2000));
}

TEST_CASE("a seed of its own goes to the link that loses packets", "[driver]") {
  config::FaultConfig lossy = fault("lossy_link", 4, 0.5);
  lossy.seed = 17;
  const auto events = fault_events(lossy, fabric_of(leaves()));
  REQUIRE(events.size() == 2);
  CHECK(events[0].seed == 17);
  CHECK(events[1].seed == 0);
}

TEST_CASE("other DSCPs and thresholds are for the host and the switch at their end", "[driver]") {
  const fabric::FabricSpec spec = fabric_of(leaves());
  const auto dscp = fault_events(fault("wrong_dscp", 2, 1), spec);
  REQUIRE(dscp.size() == 2);
  CHECK(dscp[0].directions == 1);
  CHECK(dscp[0].traffic_class == 1);
  CHECK(dscp[1].traffic_class == kTrafficClasses);
  config::FaultConfig early = fault("ecn_wrong", 0, 0.1);
  early.links = {0, 1, 4, 5};
  const auto marks = fault_events(early, spec);
  REQUIRE(marks.size() == 8);
  CHECK(marks[0].action == LinkAction::mark_at);
  CHECK(marks[0].factor == 0.1);
  CHECK(marks[1].action == LinkAction::mark_on);
}

TEST_CASE("ports that collide pass the link that they are chosen for", "[driver]") {
  const fabric::FabricSpec spec = fabric_of(leaves());
  const fabric::Topology topology(spec);
  for (std::uint32_t i = 0; i < 50; ++i) {
    CAPTURE(i);
    const auto port = port_by(2 * 5, spec, topology, 0, 3, static_cast<std::uint16_t>(50'000 + i));
    REQUIRE(port);
    const auto way =
        topology.path(0, 3, fabric::entropy_of(spec.subnet_base + 1, spec.subnet_base + 4, *port));
    REQUIRE(way.size() == 4);
    CHECK(way[1] == 2 * 5);
  }
  CHECK_FALSE(port_by(2 * 5, spec, topology, 0, 1, 50'000));  // at one switch
  CHECK_FALSE(port_by(2 * 5, spec, topology, 2, 0, 50'000));  // from another leaf
}

TEST_CASE("computing takes longer while its host is slow", "[driver]") {
  MessagePlan plan;
  plan.slow_computing = {{3, Picos{100}, Picos{200}, 1.5}};
  PlannedMessage computing;
  computing.src = computing.dst = 3;
  computing.computes = true;
  computing.gap = Picos{1000};
  CHECK(computing_time(plan, computing, Picos{99}) == Picos{1000});
  CHECK(computing_time(plan, computing, Picos{100}) == Picos{1500});
  CHECK(computing_time(plan, computing, Picos{200}) == Picos{1000});
  computing.src = 2;
  CHECK(computing_time(plan, computing, Picos{150}) == Picos{1000});
}

}  // namespace
}  // namespace paceline
