#include "tools/tuning/search_runner.h"

#include <fmt/format.h>

#include <stdexcept>

#include <nlohmann/json.hpp>

#include "dataplane/base/hash.h"
#include "tools/cli/cli.h"
#include "tools/run/run_record.h"
#include "tools/task/input_keys.h"

namespace paceline::tools {

namespace {

// Runs of some candidates: candidate by candidate, scenario by scenario, seed by seed.
class CandidateTasks final : public TaskList {
 public:
  CandidateTasks(const std::vector<PreparedScenario>& scenarios,
                 std::vector<config::CcConfig> configs, std::span<const std::uint64_t> seeds)
      : scenarios_(scenarios),
        configs_(std::move(configs)),
        seeds_(seeds),
        results_(configs_.size() * scenarios.size() * seeds.size()) {
    InputKeys inputs;
    for (const config::CcConfig& cc : configs_) {
      for (const PreparedScenario& prepared : scenarios) {
        config::Scenario scenario = prepared.scenario;
        scenario.cc = cc;
        keys_.push_back(
            ContentHash().number(program_key()).number(inputs.of_scenario(scenario)).value());
      }
    }
  }

  std::size_t size() const override { return results_.size(); }
  experiment::WorkUnit unit(std::size_t task) const override {
    return {static_cast<std::uint32_t>(scenario(task)), 1};
  }
  std::string name(std::size_t task) const override {
    return fmt::format("scenario '{}' under candidate {}, seed {}",
                       scenarios_[scenario(task)].scenario.name, candidate(task), seed(task));
  }
  std::uint64_t task_key(std::size_t task) const override {
    return ContentHash().number(keys_[task / seeds_.size()]).number(seed(task)).value();
  }
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override {
    RunControl control;
    control.stop = &stop;
    experiment::RunResult result;
    try {
      const ScenarioRun run =
          run_scenario(scenarios_[scenario(task)], configs_[candidate(task)], seed(task), control);
      if (run.end == RunEnd::stopped) return {"", run.result.hops};
      result = run.result;
    } catch (const std::invalid_argument& error) {
      result.status = experiment::RunStatus::failed;
      result.reason = error.what();
    }
    return {result_text(result), result.hops};
  }
  std::string keep(std::size_t task, std::string_view record) override {
    try {
      results_[task] = result_of(nlohmann::json::parse(record));
    } catch (const std::exception& error) {
      return fmt::format("the record of {} cannot be used: {}", name(task), error.what());
    }
    results_[task].scenario = scenarios_[scenario(task)].scenario.name;
    results_[task].seed = seed(task);
    return {};
  }
  const std::vector<experiment::RunResult>& results() const { return results_; }

 private:
  std::size_t candidate(std::size_t task) const {
    return task / (scenarios_.size() * seeds_.size());
  }
  std::size_t scenario(std::size_t task) const { return task / seeds_.size() % scenarios_.size(); }
  std::uint64_t seed(std::size_t task) const { return seeds_[task % seeds_.size()]; }

  const std::vector<PreparedScenario>& scenarios_;
  std::vector<config::CcConfig> configs_;
  std::span<const std::uint64_t> seeds_;
  std::vector<std::uint64_t> keys_;  // candidate by candidate, scenario by scenario
  std::vector<experiment::RunResult> results_;
};

}  // namespace

config::CcConfig SearchRunner::config_of(std::span<const double> values) const {
  config::CcConfig cc = arm_;
  for (const tuner::Dimension& dimension : space_.dimensions()) {
    // If a name is given twice, the later value holds.
    cc.params.push_back(
        {std::string(algorithm_.params[dimension.param].name), values[dimension.param]});
  }
  return cc;
}

std::vector<tuner::Score> SearchRunner::evaluate(std::span<const std::vector<double>> candidates,
                                                 std::span<const std::uint64_t> seeds) const {
  std::vector<config::CcConfig> configs;
  for (const std::vector<double>& values : candidates) configs.push_back(config_of(values));
  CandidateTasks tasks(scenarios_, std::move(configs), seeds);
  const std::string problem = execute_all(tasks, workers_, Interrupt::flag());
  if (!problem.empty()) throw std::logic_error(problem);
  if (Interrupt::flag().load()) return {};
  const std::size_t runs = scenarios_.size() * seeds.size();  // of one candidate
  std::vector<tuner::Score> scores;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    scores.push_back(tuner::score(std::span(tasks.results()).subspan(i * runs, runs), limits_));
  }
  return scores;
}

}  // namespace paceline::tools
