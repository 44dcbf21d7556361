// The checked task of `paceline tune`: arm, scenarios, limits and the search space.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cc/interface/algorithm.h"
#include "control/tuner/search_record.h"
#include "dataplane/config/scenario.h"
#include "tools/cli/cli.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

struct TuneOptions {
  InputOptions input;
  std::string arm;
  std::vector<std::string> params;
  std::vector<std::string> scenarios;
  std::vector<std::string> limits;
  std::uint32_t evaluations = 200;
  std::uint32_t repetitions = 2;
  std::uint32_t finalists = 8;
  std::uint32_t validation = 6;
  std::string out;
  unsigned jobs = 0;
  bool quiet = false;
};

struct Task {
  config::CcConfig arm;
  const cc::AlgorithmInfo* algorithm = nullptr;
  std::vector<PreparedScenario> scenarios;
  std::vector<tuner::Limit> limits;
  std::optional<tuner::SearchSpace> space;
  tuner::SearchRecord record;  // names, seeds and limits filled in; no candidates yet
  std::string out;             // file of the record
};

// Reads the experiment and checks every option against it. All errors are reported at once; the
// task is complete if there are none. `writes`: the output is checked, too.
config::Read<Task> read_task(const TuneOptions& options, bool writes);

}  // namespace paceline::tools
