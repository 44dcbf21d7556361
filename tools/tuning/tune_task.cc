#include "tools/tuning/tune_task.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <variant>

#include <fmt/format.h>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/experiment/design.h"
#include "control/experiment/results/results_file.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/scenario/plugin_load.h"

namespace paceline::tools {

namespace {

std::string listed(const std::vector<std::string>& names) {
  const std::vector<std::string_view> views(names.begin(), names.end());
  return config::list_names(views);
}

void choose_arm(const config::Experiment& experiment, const TuneOptions& options, Task& task,
                std::vector<std::string>& errors) {
  std::vector<std::string> names;
  for (const config::Arm& arm : experiment.arms) {
    names.push_back(arm.name);
    if (options.arm.empty() ? names.size() == 1 : arm.name == options.arm) task.arm = arm.cc;
    if (arm.name == options.arm || options.arm.empty()) {
      task.algorithm = cc::find(task.arm.algorithm);
    }
  }
  if (task.algorithm == nullptr) {
    errors.push_back(
        fmt::format("--arm {}: {} has {}", options.arm, options.input.file, listed(names)));
  }
}

void choose_scenarios(const config::Experiment& experiment, const TuneOptions& options, Task& task,
                      std::vector<std::string>& errors) {
  std::vector<std::string> names;
  for (const config::Scenario& scenario : experiment.scenarios) names.push_back(scenario.name);
  for (const std::string& wanted : options.scenarios) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      errors.push_back(
          fmt::format("--scenario {}: {} has {}", wanted, options.input.file, listed(names)));
    }
  }
  for (const config::Scenario& scenario : experiment.scenarios) {
    const auto& wanted = options.scenarios;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), scenario.name) == wanted.end()) {
      continue;
    }
    auto prepared = prepare(scenario);
    errors.insert(errors.end(), prepared.errors.begin(), prepared.errors.end());
    task.scenarios.push_back(std::move(prepared.value));
    task.record.scenarios.push_back(scenario.name);
  }
}

void read_limits(const TuneOptions& options, Task& task, std::vector<std::string>& errors) {
  task.limits = tuner::default_limits();
  for (const std::string& text : options.limits) {
    const std::size_t equals = text.find('=');
    const auto metric = experiment::metric_by_name(text.substr(0, equals));
    char* end = nullptr;
    const std::string number = equals == std::string::npos ? "" : text.substr(equals + 1);
    const double most = std::strtod(number.c_str(), &end);
    if (!metric || number.empty() || *end != '\0' || !(most >= 0) || !std::isfinite(most)) {
      errors.push_back(fmt::format(
          "--limit {}: expected METRIC=MOST, METRIC a name of docs/telemetry.md such as "
          "queue_max_bytes, MOST a number >= 0 in its unit",
          text));
      continue;
    }
    std::erase_if(task.limits, [&](const tuner::Limit& l) { return l.metric == *metric; });
    task.limits.push_back({*metric, most});
  }
}

void make_space(const config::Experiment& experiment, const TuneOptions& options, Task& task,
                std::vector<std::string>& errors) {
  std::vector<tuner::DimensionRequest> requests;
  for (const std::string& text : options.params) {
    const auto request = tuner::parse_dimension(text);
    if (!request) {
      errors.push_back(fmt::format("--param {}: expected NAME or NAME=LOW:HIGH", text));
      continue;
    }
    requests.push_back(*request);
  }
  if (task.algorithm == nullptr) return;
  cc::PortFacts facts;
  facts.link_rate = experiment.scenarios.front().fabric.rate;
  std::vector<cc::ParamOverride> overrides;
  for (const config::ParamValue& value : task.arm.params) {
    overrides.push_back({value.name, value.value});
  }
  // The reader has checked the arm, so this resolves.
  const auto resolved = cc::resolve_params(*task.algorithm, task.arm.profile, overrides, facts);
  task.space.emplace(*task.algorithm, std::get<std::vector<double>>(resolved), requests, errors);
}

// The command that repeats the search.
std::string command_text(const TuneOptions& options) {
  std::string text = "paceline tune " + options.input.file;
  const auto add = [&text](std::string_view option, const std::string& value) {
    text += fmt::format(" {} {}", option, value);
  };
  if (!options.arm.empty()) add("--arm", options.arm);
  for (const std::string& name : options.scenarios) add("--scenario", name);
  for (const std::string& param : options.params) add("--param", param);
  for (const std::string& limit : options.limits) add("--limit", limit);
  add("--evaluations", std::to_string(options.evaluations));
  add("--repetitions", std::to_string(options.repetitions));
  add("--finalists", std::to_string(options.finalists));
  add("--validation", std::to_string(options.validation));
  for (const std::string& set : options.input.overrides()) add("--set", set);
  return text;
}

}  // namespace

config::Read<Task> read_task(const TuneOptions& options) {
  config::Read<Task> result;
  Task& task = result.value;
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_experiment_file(options.input.file, reader);
  if (!read.ok()) {
    result.errors = std::move(read.errors);
    return result;
  }
  choose_arm(read.value, options, task, result.errors);
  choose_scenarios(read.value, options, task, result.errors);
  read_limits(options, task, result.errors);
  make_space(read.value, options, task, result.errors);
  task.out = options.out.empty() ? read.value.name + ".search.json" : options.out;
  for (std::string& error : check_output(task.out)) result.errors.push_back(std::move(error));

  tuner::SearchRecord& record = task.record;
  record.version = experiment::kResultsVersion;
  record.command = command_text(options);
  record.algorithm = task.arm.algorithm;
  record.profile = task.arm.profile;
  record.seed = read.value.seed;
  record.limits = task.limits;
  for (std::uint32_t r = 0; r < options.repetitions + options.validation; ++r) {
    auto& seeds = r < options.repetitions ? record.search_seeds : record.validation_seeds;
    seeds.push_back(experiment::repetition_seed(record.seed, r));
  }
  return result;
}

}  // namespace paceline::tools
