#include "tools/experiment/ab_tasks.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "control/experiment/text/json_reader.h"
#include "dataplane/base/hash.h"
#include "tools/run/run_record.h"
#include "tools/task/input_keys.h"

namespace paceline::tools {

AbTasks::AbTasks(const config::Experiment& experiment,
                 const std::vector<PreparedScenario>& scenarios, bool check, bool detail)
    : experiment_(experiment),
      scenarios_(scenarios),
      check_(check),
      detail_(detail),
      plan_(experiment::paired_replay(experiment)),
      collector_(experiment),
      results_(plan_.size()) {
  InputKeys inputs;
  for (const PreparedScenario& prepared : scenarios) {
    config::Scenario cell = prepared.scenario;
    for (const config::Arm& arm : experiment.arms) {
      cell.cc = arm.cc;
      cell_keys_.push_back(ContentHash()
                               .number(program_key())
                               .number(inputs.of_scenario(cell))
                               .number(check)
                               .number(detail)
                               .value());
    }
  }
}

experiment::WorkUnit AbTasks::unit(std::size_t task) const {
  return {static_cast<std::uint32_t>(cell(plan_[task])), 1};
}

std::string AbTasks::name(std::size_t task) const {
  const experiment::PlannedRun& run = plan_[task];
  return fmt::format("scenario '{}' under '{}', repetition {}",
                     scenarios_[run.scenario].scenario.name, experiment_.arms[run.arm].name,
                     run.repetition);
}

std::uint64_t AbTasks::task_key(std::size_t task) const {
  const experiment::PlannedRun& run = plan_[task];
  return ContentHash()
      .number(cell_keys_[cell(run)])
      .number(run.repetition)
      .number(run.seed)
      .value();
}

TaskRecord AbTasks::execute(std::size_t task, const std::atomic<bool>& stop) const {
  const experiment::PlannedRun& planned = plan_[task];
  RunControl control;
  control.check_invariants = check_;
  control.stop = &stop;
  control.series = detail_ && DetailCollector::wants_series(planned.repetition);
  const ScenarioRun run = run_scenario(scenarios_[planned.scenario],
                                       experiment_.arms[planned.arm].cc, planned.seed, control);
  if (run.end == RunEnd::stopped) return {"", run.result.hops};
  std::string text = "{\"result\":" + result_text(run.result);
  if (detail_) text += ",\"distribution\":" + distribution_text(run.distribution);
  if (control.series) text += ",\"series\":" + series_text(run.series);
  return {text + "}", run.result.hops};
}

std::string AbTasks::keep(std::size_t task, std::string_view record) {
  const experiment::PlannedRun& planned = plan_[task];
  try {
    const nlohmann::json json = nlohmann::json::parse(record);
    experiment::RunResult result = result_of(json.at("result"));
    result.scenario = scenarios_[planned.scenario].scenario.name;
    result.arm = experiment_.arms[planned.arm].name;
    result.repetition = planned.repetition;
    result.seed = planned.seed;
    if (detail_) {
      experiment::TimeSeries series;
      if (DetailCollector::wants_series(planned.repetition)) {
        series = series_of(json.at("series"));
        series.repetition = planned.repetition;
        series.seed = planned.seed;
      }
      collector_.add(planned.scenario, planned.arm, distribution_from(json.at("distribution")),
                     std::move(series));
    }
    results_[task] = std::move(result);
  } catch (const std::exception& error) {
    return fmt::format("the record of {} cannot be used: {}", name(task), error.what());
  }
  return {};
}

std::vector<experiment::RunResult> AbTasks::finished() const {
  std::vector<experiment::RunResult> all;
  for (const auto& result : results_) {
    if (result) all.push_back(*result);
  }
  return all;
}

}  // namespace paceline::tools
