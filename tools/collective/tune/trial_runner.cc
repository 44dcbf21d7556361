#include "tools/collective/tune/trial_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <utility>

#include <nlohmann/json.hpp>

#include "dataplane/base/hash.h"
#include "tools/run/run_record.h"
#include "tools/run/scenario_run.h"
#include "tools/task/input_keys.h"

namespace paceline::tools {

namespace {

Trial timed(const TuneSetting& setting, workload::CollectiveOp op, const ScenarioRun& run) {
  Trial trial{setting, 0, 0, {}};
  if (run.result.status != experiment::RunStatus::ok || !run.job) {
    trial.problem = run.result.reason.empty() ? "did not end" : run.result.reason;
    return trial;
  }
  trial.took_us = counted_mean_us(*run.job, op);
  std::vector<std::int64_t> messages;
  for (const FlowRow& row : run.flows) messages.push_back(row.fct.count);
  const auto middle = messages.begin() + static_cast<std::ptrdiff_t>(messages.size() / 2);
  std::nth_element(messages.begin(), middle, messages.end());
  trial.message_us = static_cast<double>(*middle) / 1e6;
  return trial;
}

// The emulations of some settings.
class TrialTasks final : public TaskList {
 public:
  TrialTasks(const TrialRunner& runner, std::vector<TuneSetting> settings)
      : runner_(runner), settings_(std::move(settings)), trials_(settings_.size()) {
    InputKeys inputs;
    for (const TuneSetting& setting : settings_) {
      const config::Scenario scenario = runner.scenario_of(setting);
      keys_.push_back(ContentHash()
                          .number(program_key())
                          .number(inputs.of_scenario(scenario))
                          .number(scenario.seed)
                          .value());
    }
  }

  std::size_t size() const override { return settings_.size(); }
  experiment::WorkUnit unit(std::size_t) const override { return {0, 1}; }
  std::string name(std::size_t task) const override {
    return fmt::format("{} by {}", to_string(runner_.op()), settings_[task].schedule);
  }
  std::uint64_t task_key(std::size_t task) const override { return keys_[task]; }
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override {
    const Trial trial = runner_.emulate(settings_[task], stop);
    if (stop.load()) return {};
    return {fmt::format(R"({{"took_us":{},"message_us":{},"problem":{}}})",
                        exact_number_text(trial.took_us), exact_number_text(trial.message_us),
                        json_text_of(trial.problem)),
            0};
  }
  std::string keep(std::size_t task, std::string_view record) override {
    try {
      const nlohmann::json json = nlohmann::json::parse(record);
      trials_[task] = {settings_[task], exact_number_of(json.at("took_us")),
                       exact_number_of(json.at("message_us")),
                       json.at("problem").get<std::string>()};
    } catch (const std::exception& error) {
      return fmt::format("the record of {} cannot be used: {}", name(task), error.what());
    }
    return {};
  }
  const Trial& trial(std::size_t task) const { return trials_[task]; }

 private:
  const TrialRunner& runner_;
  std::vector<TuneSetting> settings_;
  std::vector<std::uint64_t> keys_;
  std::vector<Trial> trials_;
};

}  // namespace

TrialRunner::TrialRunner(const TuneGroup& group, workload::CollectiveOp op, std::uint64_t bytes,
                         std::uint32_t iterations, const Workers& workers,
                         const std::atomic<bool>& stop)
    : group_(group),
      op_(op),
      bytes_(bytes),
      iterations_(iterations),
      workers_(workers),
      stop_(stop) {}

TrialRunner::Key TrialRunner::key_of(const TuneSetting& setting) {
  auto found = schedules_.find(setting.schedule);
  if (found == schedules_.end()) {
    const config::JobConfig& job = group_.scenario.workload.job;
    auto made = workload::make_schedule(op_, setting.schedule, group_.shape,
                                        {.aggregation = job.aggregation, .window = job.peers});
    found = schedules_.emplace(setting.schedule, std::move(made)).first;
  }
  if (!found->second.ok()) return {setting.schedule, 0, 0, 0, 0, false};
  const std::uint64_t parts = workload::parts_of(found->second.value, bytes_, setting.chunk_bytes);
  const std::uint64_t under_way = std::uint64_t{setting.channels} * setting.window;
  return {setting.schedule,
          parts,
          std::min<std::uint64_t>(setting.channels, parts),
          std::min(under_way, parts),
          setting.queue_pairs,
          setting.planned_ports};
}

config::Scenario TrialRunner::scenario_of(const TuneSetting& setting) const {
  config::Scenario scenario = group_.scenario;
  config::JobConfig& job = scenario.workload.job;
  job.operation = to_string(op_);
  job.bytes = bytes_;
  job.iterations = iterations_ + 1;
  apply(setting, op_, scenario);
  return scenario;
}

Trial TrialRunner::emulate(const TuneSetting& setting, const std::atomic<bool>& stop) const {
  Trial refused{setting, 0, 0, {}};
  auto prepared = prepare(scenario_of(setting));
  if (!prepared.ok()) {
    refused.problem = prepared.errors.front();
    return refused;
  }
  RunControl control;
  control.stop = &stop;
  const config::Scenario& ready = prepared.value.scenario;
  try {
    return timed(setting, op_, run_scenario(prepared.value, ready.cc, ready.seed, control));
  } catch (const std::exception& error) {  // also std::bad_alloc, on a thread of its own
    refused.problem = error.what();
    return refused;
  }
}

std::vector<Trial> TrialRunner::run(std::span<const TuneSetting> settings) {
  std::vector<Key> keys;
  std::vector<std::pair<Key, TuneSetting>> wanted;
  for (const TuneSetting& setting : settings) {
    keys.push_back(key_of(setting));
    const bool asked = std::any_of(wanted.begin(), wanted.end(),
                                   [&](const auto& other) { return other.first == keys.back(); });
    if (!asked && !known_.contains(keys.back())) wanted.emplace_back(keys.back(), setting);
  }
  std::vector<TuneSetting> settings_wanted;
  for (const auto& [key, setting] : wanted) settings_wanted.push_back(setting);
  TrialTasks tasks(*this, std::move(settings_wanted));
  const std::string problem = execute_all(tasks, workers_, stop_);
  if (!problem.empty()) throw std::logic_error(problem);
  if (stop_.load()) return {};
  for (std::size_t i = 0; i < wanted.size(); ++i) known_.emplace(wanted[i].first, tasks.trial(i));
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    trials.push_back(known_.at(keys[i]));
    trials.back().setting = settings[i];
  }
  return trials;
}

}  // namespace paceline::tools
