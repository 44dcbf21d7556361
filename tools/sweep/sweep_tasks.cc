#include "tools/sweep/sweep_tasks.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "control/experiment/design.h"
#include "control/experiment/text/json_reader.h"
#include "control/league/plan/settings_text.h"
#include "dataplane/base/hash.h"
#include "dataplane/config/keys/scenario_keys.h"
#include "tools/run/run_record.h"
#include "tools/run/scenario_run.h"
#include "tools/task/input_keys.h"

namespace paceline::tools {

namespace {

constexpr std::size_t kMostPointErrors = 20;

// Whether points may name different files or plug-ins. If so, those of each point are read.
bool sweeps_files(const sweep::Plan& plan) {
  const auto keys = config::scenario_keys();
  for (const std::string& key : plan.keys) {
    if (std::any_of(keys.begin(), keys.end(), [&](const config::KeySpec& spec) {
          return spec.form == config::Form::path &&
                 (spec.path == key || spec.path.starts_with(key + "."));
        })) {
      return true;
    }
  }
  const auto plugin = [](const sweep::Value& value) {
    return value.word.find("plugin:") != std::string::npos;
  };
  for (const sweep::GridAxis& axis : plan.grid) {
    if (std::any_of(axis.values.begin(), axis.values.end(), plugin)) return true;
  }
  return std::any_of(plan.list.begin(), plan.list.end(), [&](const auto& row) {
    return std::any_of(row.begin(), row.end(),
                       [&](const sweep::ListValue& given) { return plugin(given.value); });
  });
}

// The scenario of a point that was checked, with its files.
PreparedScenario prepared_point(const sweep::Plan& plan, std::size_t point,
                                const config::ReaderOptions& reader) {
  auto scenario = sweep::scenario_of(plan, point, reader);
  if (!scenario.ok()) throw std::invalid_argument(scenario.errors.front());
  auto prepared = prepare(std::move(scenario.value));
  if (!prepared.ok()) throw std::invalid_argument(prepared.errors.front());
  return std::move(prepared.value);
}

}  // namespace

SweepTasks::SweepTasks(const sweep::Plan& plan, const config::ReaderOptions& reader)
    : plan_(plan), reader_(reader) {
  ContentHash common;
  common.number(program_key());
  for (const std::string& set : league::settings_of(plan.scenario)) common.field(set);
  for (const std::string& set : plan.overrides) common.field(set);
  InputKeys inputs;
  const bool each = sweeps_files(plan);
  const auto files_of = [&](std::size_t at) {
    return inputs.of_files(sweep::scenario_of(plan, at, reader).value);
  };
  std::uint64_t files = files_of(0);
  for (std::size_t at = 0; at < plan.points(); ++at) {
    if (each && at != 0) files = files_of(at);
    ContentHash hash(common);
    for (const sweep::Setting& setting : plan.point(at)) {
      hash.field(setting.key).field(setting.word);
    }
    point_keys_.push_back(hash.number(files).value());
  }
  for (std::uint32_t r = 0; r < plan.repetitions; ++r) {
    seeds_.push_back(experiment::repetition_seed(plan.seed, r));
  }
  runs_.resize(size());
}

std::vector<std::string> SweepTasks::check_points() const {
  std::vector<std::string> errors;
  const bool each = sweeps_files(plan_);
  for (std::size_t at = 0; at < plan_.points(); ++at) {
    auto scenario = sweep::scenario_of(plan_, at, reader_);
    if (scenario.ok() && (each || at == 0)) {
      scenario.errors = prepare(std::move(scenario.value)).errors;
    }
    for (std::string& error : scenario.errors) {
      if (std::find(errors.begin(), errors.end(), error) == errors.end()) {
        errors.push_back(std::move(error));
      }
    }
    if (errors.size() >= kMostPointErrors) break;
  }
  return errors;
}

experiment::WorkUnit SweepTasks::unit(std::size_t task) const {
  return {static_cast<std::uint32_t>(point(task)), 1};
}

std::string SweepTasks::name(std::size_t task) const {
  return fmt::format("{}, repetition {}", plan_.point_text(point(task)), task / point_keys_.size());
}

std::uint64_t SweepTasks::task_key(std::size_t task) const {
  return ContentHash()
      .number(point_keys_[point(task)])
      .number(seeds_[task / point_keys_.size()])
      .value();
}

TaskRecord SweepTasks::execute(std::size_t task, const std::atomic<bool>& stop) const {
  const PreparedScenario prepared = prepared_point(plan_, point(task), reader_);
  RunControl control;
  control.stop = &stop;
  const ScenarioRun run =
      run_scenario(prepared, prepared.scenario.cc, seeds_[task / point_keys_.size()], control);
  return {run.end == RunEnd::stopped ? "" : result_text(run.result), run.result.hops};
}

std::string SweepTasks::keep(std::size_t task, std::string_view record) {
  try {
    experiment::RunResult result = result_of(nlohmann::json::parse(record));
    runs_[task] = {result.metrics, result.messages_started, result.messages_completed,
                   result.trace_hash, result.status};
    if (result.status != experiment::RunStatus::ok) reasons_[task] = std::move(result.reason);
  } catch (const std::exception& error) {
    return fmt::format("the record of {} cannot be used: {}", name(task), error.what());
  }
  return {};
}

}  // namespace paceline::tools
