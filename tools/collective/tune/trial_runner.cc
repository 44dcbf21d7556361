#include "tools/collective/tune/trial_runner.h"

#include <algorithm>
#include <stdexcept>
#include <thread>
#include <utility>

#include "tools/run/scenario_run.h"

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

}  // namespace

TrialRunner::TrialRunner(const TuneGroup& group, workload::CollectiveOp op, std::uint64_t bytes,
                         std::uint32_t iterations, unsigned jobs, const std::atomic<bool>& stop)
    : group_(group), op_(op), bytes_(bytes), iterations_(iterations), jobs_(jobs), stop_(stop) {}

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

Trial TrialRunner::emulate(const TuneSetting& setting) const {
  config::Scenario scenario = group_.scenario;
  config::JobConfig& job = scenario.workload.job;
  job.operation = to_string(op_);
  job.bytes = bytes_;
  job.iterations = iterations_ + 1;
  apply(setting, op_, scenario);
  Trial refused{setting, 0, 0, {}};
  auto prepared = prepare(std::move(scenario));
  if (!prepared.ok()) {
    refused.problem = prepared.errors.front();
    return refused;
  }
  RunControl control;
  control.stop = &stop_;
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
  std::vector<Trial> made(wanted.size());
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next.fetch_add(1); i < made.size() && !stop_.load(); i = next.fetch_add(1))
      made[i] = emulate(wanted[i].second);
  };
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 1; i < std::min<std::size_t>(jobs_, made.size()); ++i) {
      threads.emplace_back(work);
    }
    work();
  }
  if (stop_.load()) return {};
  for (std::size_t i = 0; i < made.size(); ++i) known_.emplace(wanted[i].first, std::move(made[i]));
  std::vector<Trial> trials;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    trials.push_back(known_.at(keys[i]));
    trials.back().setting = settings[i];
  }
  return trials;
}

}  // namespace paceline::tools
