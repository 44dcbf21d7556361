// Shared by the two commands of `paceline tuner`: the workload and the world.
#pragma once

#include <memory>
#include <string>

#include "cc/interface/algorithm.h"
#include "control/tuner/online/candidates/presets.h"
#include "dataplane/config/toml/diagnostics.h"
#include "tools/cli/cli.h"
#include "tools/run/scenario_run.h"
#include "tools/tuning/tuner_world.h"

namespace paceline::tools {

struct TunerInput {
  InputOptions input;
  std::string wave;
  std::string window = "100us";
  std::uint32_t block = 20;  // windows
  std::string presets;
  bool quiet = false;

  void add_to(const config::Command& command);
};

struct TunerTask {
  PreparedScenario prepared;
  const cc::AlgorithmInfo* algorithm = nullptr;
  std::vector<double> champion;          // of the scenario's [cc]
  tuner::online::PresetLibrary presets;  // empty unless asked for
  TunerWorldOptions world;
};

// Reports all errors at once.
config::Read<TunerTask> read_tuner_task(const TunerInput& options);

void add_tuner_simulate(const config::Command& tuner, int& exit_code);
void add_tuner_search(const config::Command& tuner, int& exit_code);

}  // namespace paceline::tools
