// Scenarios of the tests in this folder: written as TOML, like a user's, and run in virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/run/scenario_run.h"

namespace paceline::simtest {

// First lines of a scenario: its congestion control.
inline const std::string kFixed = "cc = { algorithm = \"fixed\" }\n";
inline const std::string kDcqcnPaper = "cc = { algorithm = \"dcqcn\", profile = \"paper\" }\n";
inline const std::string kDcqcnHpcc = "cc = { algorithm = \"dcqcn\", profile = \"hpcc-repo\" }\n";
inline const std::string kCadence =
    "cc = { algorithm = \"cadence\", fallback = \"dcqcn\", fallback_profile = \"paper\" }\n";

// The rest of the commonest scenario: `fan_in` hosts send a message each, within 1 us, to one more.
std::string incast(std::uint64_t seed, unsigned fan_in, const std::string& message_bytes);

// Reads a scenario (and the files it names); an error fails the test.
tools::PreparedScenario prepared(const std::string& toml,
                                 const std::vector<std::string>& overrides = {});

// The config of a scenario that comes with the program: configs/scenarios/NAME.toml.
config::Scenario shipped(const std::string& name, const std::vector<std::string>& overrides = {});
tools::PreparedScenario prepared(config::Scenario scenario);

// What it asks for, as a world that has not run yet.
VirtualWorld world_of(const std::string& toml, WorldOptions options = {});

// Runs it as `paceline emulate --check` does.
tools::ScenarioRun run(const std::string& toml, const std::vector<std::string>& overrides = {});
tools::ScenarioRun run(config::Scenario scenario);

WorldOptions checked();

// Counters of all hosts, added up.
telemetry::EngineCounters total_counters(const VirtualWorld& world);

// What must hold of any world whose run has ended with every message done, whatever was lost on the
// way: every law of conservation, and nothing in flight. Empty, or what is wrong.
std::string broken_law(const VirtualWorld& world);

}  // namespace paceline::simtest
