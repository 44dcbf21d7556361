// The files of a live experiment, which together repeat its analysis on any machine:
//
//   plan.toml           as it was given
//   schedule.json       registered before the first block
//   blocks.jsonl        a line per block and cluster, appended before the next block begins
//   algorithms.json     tables of plug-ins that it compares; only where there are any
//   circumstances.json  whether it is an A/A run, and how it ended
//
// The process that runs an experiment writes them, and finds them again after a crash.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "control/experiment/live/analysis/analysis.h"
#include "control/experiment/live/plan/plan.h"
#include "control/experiment/live/plan/schedule.h"
#include "dataplane/config/algorithm_catalogue.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::experiment::live {

// The same experiment with the champion in both arms, for calibration: any effect is chance. It has
// another name, and needs no calibration itself.
Plan null_experiment_of(Plan plan);

// circumstances.json
std::string circumstances_text(const Circumstances& circumstances, bool null_experiment);

struct ExperimentFiles {
  Plan plan;
  Schedule schedule;
  BlockFile blocks;
  bool null_experiment = false;
  Circumstances circumstances;
};

// All errors. The blocks may end in a line that was cut off.
config::Read<ExperimentFiles> read_experiment_folder(const std::string& folder,
                                                     std::span<const cc::AlgorithmInfo> algorithms);

// Makes the folder and the files of an experiment that has no block yet. Returns an error, or an
// empty text once they are on the disk.
std::string write_experiment_folder(const std::string& folder, std::string_view plan,
                                    const Schedule& schedule, bool null_experiment);
// The tables of the plug-ins among the plan's arms, so that the folder is read where they are not
// loaded.
std::string write_plugin_tables(const std::string& folder, const Plan& plan,
                                const config::AlgorithmCatalogue& catalogue);
std::string write_circumstances(const std::string& folder, const Circumstances& circumstances,
                                bool null_experiment);
// Cuts away what a crash left beyond `whole_bytes`.
std::string cut_blocks(const std::string& folder, std::size_t whole_bytes);
// Durably.
std::string append_blocks(const std::string& folder, std::span<const BlockRecord> records);

}  // namespace paceline::experiment::live
