// From scenario files to plans, with the files that ship.

#include "tools/workload/workload.h"

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline::workload {
namespace {

using Lines = std::vector<std::string>;
const std::string kConfigs = std::string(PACELINE_SOURCE_DIR) + "/configs/";

config::Scenario scenario(const std::string& file) {
  auto read = config::read_scenario_file(kConfigs + "scenarios/" + file, {cc::algorithms(), {}});
  REQUIRE(read.errors == Lines{});
  return read.value;
}

// Link transmissions on a star: each data packet and its ACK take two.
std::uint64_t star_hops(const MessagePlan& plan, std::uint32_t payload) {
  std::uint64_t hops = 0;
  for (const PlannedMessage& m : plan.messages) hops += 4 * ((m.bytes + payload - 1) / payload);
  return hops;
}

TEST_CASE("the first experiment stays within its budget of packet hops", "[workload]") {
  auto read =
      config::read_experiment_file(kConfigs + "experiments/first.toml", {cc::algorithms(), {}});
  REQUIRE(read.errors == Lines{});
  CHECK(read.value.repetitions == 12);
  CHECK(read.value.arms.size() == 2);
  REQUIRE(read.value.scenarios.size() == 5);
  for (config::Scenario& s : read.value.scenarios) {
    auto inputs = load_inputs(s);
    REQUIRE(inputs.errors == Lines{});
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      INFO(s.name << " seed " << seed);
      const auto plan = make_plan(s, inputs.value, seed);
      REQUIRE(plan.errors == Lines{});
      const std::uint64_t hops = star_hops(plan.value, s.transport.payload_bytes);
      CHECK(hops > 300'000);
      CHECK(hops < 2'700'000);  // 4 million a run, with room for retransmissions and control
    }
  }
}

TEST_CASE("flows and topology in the HPCC simulator's format make a plan", "[workload]") {
  config::Scenario s = scenario("hpcc-flows.toml");
  const auto inputs = load_inputs(s);
  REQUIRE(inputs.errors == Lines{});
  CHECK(s.fabric.hosts == 8);
  CHECK(s.fabric.switches == 1);
  CHECK(s.fabric.links.size() == 8);
  CHECK(inputs.value.host_rates == std::vector<Rate>(8, rate_from_gbps(100)));
  const auto plan = make_plan(s, inputs.value, 1);
  REQUIRE(plan.errors == Lines{});
  REQUIRE(plan.value.messages.size() == 8);
  CHECK(plan.value.messages[1].src == 2);
  CHECK(plan.value.messages[1].start == Picos{200'000});
}

TEST_CASE("sizes from a file make a plan", "[workload]") {
  config::Scenario s = scenario("cdf-file.toml");
  const auto inputs = load_inputs(s);
  REQUIRE(inputs.errors == Lines{});
  const auto plan = make_plan(s, inputs.value, 1);
  REQUIRE(plan.errors == Lines{});
  for (const PlannedMessage& m : plan.value.messages) CHECK((m.bytes >= 1 && m.bytes <= 1'048'576));
}

TEST_CASE("files that cannot be read are reported together", "[workload]") {
  config::Scenario s;
  s.fabric.topology = "file";
  s.fabric.topology_file = "/no/topology";
  s.workload.kind = "open_loop";
  s.workload.cdf = "file";
  s.workload.cdf_file = "/no/cdf";
  CHECK(load_inputs(s).errors == Lines{"/no/topology: cannot be opened: No such file or directory",
                                       "/no/cdf: cannot be opened: No such file or directory"});
}

TEST_CASE("what only the topology file decides is checked after it", "[workload]") {
  config::Scenario s = scenario("hpcc-flows.toml");
  s.workload.kind = "incast";
  s.workload.receiver = 8;
  const auto inputs = load_inputs(s);
  REQUIRE(inputs.errors == Lines{});
  CHECK(make_plan(s, inputs.value, 1).errors ==
        Lines{"scenario \"hpcc-flows\": workload.receiver = 8: no such host, allowed is 0 .. 7"});
  s.workload.receiver = 0;
  CHECK(make_plan(s, inputs.value, 1).errors ==
        Lines{"scenario \"hpcc-flows\": workload.fan_in = 16: 8 hosts leave 1 .. 7 senders"});
  s.workload.kind = "open_loop";
  s.workload.incast_load = 0.02;
  const auto sizes = load_inputs(s);
  CHECK(make_plan(s, sizes.value, 1).errors ==
        Lines{"scenario \"hpcc-flows\": workload.fan_in = 16: 8 hosts leave 1 .. 7 senders"});
}

TEST_CASE("plans that would not fit are refused before they are made", "[workload]") {
  config::Scenario s;
  s.fabric.hosts = 100'000;
  s.workload.kind = "all_to_all";
  auto inputs = load_inputs(s);
  CHECK(make_plan(s, inputs.value, 1).errors.size() == 1);
  s.workload.kind = "ring_all_reduce";
  s.workload.all_reduce_bytes = 1'000'000'000;
  CHECK(make_plan(s, inputs.value, 1).errors.size() == 1);
  s.fabric.hosts = 16;
  s.workload.all_reduce_bytes = 15;
  CHECK(
      make_plan(s, inputs.value, 1).errors ==
      Lines{
          "scenario \"scenario\": workload.scale = 1: leaves a gradient bucket of 15 bytes for 16 "
          "ranks; at least one byte each is needed"});
  s.workload.kind = "open_loop";
  s.workload.window = picos_from_micros(1'000'000'000);
  inputs = load_inputs(s);
  CHECK(make_plan(s, inputs.value, 1).errors.size() == 1);
  s.workload.window = picos_from_micros(1'000);
  CHECK(make_plan(s, inputs.value, 1).errors.empty());
  s.workload.incast_load = 1;
  s.workload.message_bytes = 1;
  CHECK(make_plan(s, inputs.value, 1).errors.size() == 1);
}

}  // namespace
}  // namespace paceline::workload
