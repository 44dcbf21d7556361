#include "tests/sim/sim_support.h"

#include <catch2/catch.hpp>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline::simtest {

std::string incast(std::uint64_t seed, unsigned fan_in, const std::string& message_bytes) {
  return "seed = " + std::to_string(seed) + "\n[fabric]\nhosts = " + std::to_string(fan_in + 1) +
         "\n[workload]\nkind = \"incast\"\nfan_in = " + std::to_string(fan_in) +
         "\nmessage_bytes = \"" + message_bytes + "\"\nstart_jitter = \"1us\"\n";
}

tools::PreparedScenario prepared(const std::string& toml,
                                 const std::vector<std::string>& overrides) {
  auto read =
      config::read_scenario_text(toml, "test", PACELINE_SOURCE_DIR, {cc::algorithms(), overrides});
  REQUIRE(read.errors == std::vector<std::string>{});
  return prepared(std::move(read.value));
}

config::Scenario shipped(const std::string& name, const std::vector<std::string>& overrides) {
  auto read = config::read_scenario_file(
      std::string(PACELINE_SOURCE_DIR) + "/configs/scenarios/" + name + ".toml",
      {cc::algorithms(), overrides});
  REQUIRE(read.errors == std::vector<std::string>{});
  return std::move(read.value);
}

tools::PreparedScenario prepared(config::Scenario scenario) {
  auto out = tools::prepare(std::move(scenario));
  REQUIRE(out.errors == std::vector<std::string>{});
  return std::move(out.value);
}

VirtualWorld world_of(const std::string& toml, WorldOptions options) {
  const tools::PreparedScenario p = prepared(toml);
  auto plan = workload::make_plan(p.scenario, p.inputs, p.scenario.seed);
  REQUIRE(plan.errors == std::vector<std::string>{});
  return {p.scenario, std::move(plan.value), std::move(options)};
}

namespace {
tools::ScenarioRun run_prepared(const tools::PreparedScenario& p) {
  tools::RunControl control;
  control.check_invariants = true;
  return tools::run_scenario(p, p.scenario.cc, p.scenario.seed, control);
}
}  // namespace

tools::ScenarioRun run(const std::string& toml, const std::vector<std::string>& overrides) {
  return run_prepared(prepared(toml, overrides));
}

tools::ScenarioRun run(config::Scenario scenario) {
  return run_prepared(prepared(std::move(scenario)));
}

WorldOptions checked() {
  WorldOptions options;
  options.check_invariants = true;
  return options;
}

telemetry::EngineCounters total_counters(const VirtualWorld& world) {
  telemetry::EngineCounters sum{};
  for (std::uint32_t h = 0; h < world.hosts(); ++h) sum += world.engine(h).counters();
  return sum;
}

std::string broken_law(const VirtualWorld& world) {
  if (!world.problem().empty()) return world.problem();
  if (std::string broken = world.network().check_conservation(); !broken.empty()) return broken;
  if (world.messages_completed() + world.messages_failed() != world.plan().messages.size()) {
    return "messages are neither completed nor failed";
  }
  for (std::size_t id = 0; id < world.records().size(); ++id) {
    const MessageRecord& record = world.records()[id];
    const std::string name = "message " + std::to_string(id);
    if (record.ready < world.plan().messages[id].start) return name + " began too early";
    if (record.completed < record.ready) return name + " completed before it began";
  }
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    const std::string name = "host " + std::to_string(h) + ": ";
    const transport::Engine& engine = world.engine(h);
    if (std::string broken = engine.view().check_conservation(); !broken.empty())
      return name + broken;
    if (!engine.view().violation().empty()) return name + engine.view().violation();
    if (world.messages_failed() == 0 && engine.view().inflight_bytes() != 0) {
      return name + std::to_string(engine.view().inflight_bytes()) + " bytes are still in flight";
    }
    const telemetry::EngineCounters counters = world.engine(h).counters();
    if (counters.digest_mismatches != 0) return name + "a digest does not match";
    if (counters.cq_overflows != 0) return name + "a completion was lost";
    if (telemetry::malformed_total(counters) > world.network().stats().corrupted_packets) {
      return name + "a packet was malformed that the fabric did not corrupt";
    }
    sent += counters.tx_data_bytes;
    received += counters.rx_data_bytes;
  }
  if (world.messages_failed() == 0 && sent != received) {
    return std::to_string(sent) + " bytes were sent for the first time, " +
           std::to_string(received) + " accepted in sequence";
  }
  return {};
}

}  // namespace paceline::simtest
