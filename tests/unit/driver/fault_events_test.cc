// What faults do to links, and that it ends.

#include <catch2/catch.hpp>

#include "dataplane/driver/scenario/fault_events.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/driver/traffic/message_plan.h"

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
  REQUIRE(flaps.size() == 4);
  CHECK(flaps[0].action == LinkAction::down);
  CHECK(flaps[1].action == LinkAction::up);
  CHECK(flaps[1].at - flaps[0].at == picos_from_micros(1));
  CHECK(flaps[2].at - flaps[0].at == picos_from_micros(10));
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
