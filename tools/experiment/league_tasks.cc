#include "tools/experiment/league_tasks.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "dataplane/base/hash.h"
#include "tools/task/input_keys.h"

namespace paceline::tools {

namespace {

using experiment::Metric;
using league::Measure;

// Messages as the league measures them. One that was outstanding at the end enters with its age.
std::vector<league::Message> messages_of(const ScenarioRun& run) {
  std::vector<league::Message> out;
  out.reserve(run.flows.size());
  for (const FlowRow& flow : run.flows) {
    const bool completed = flow.fct.count >= 0 && !flow.failed;
    const Picos age = run.result.simulated - flow.start;
    if (flow.failed || (!completed && age.count <= 0)) continue;
    out.push_back({flow.src, flow.dst, flow.bytes, flow.start, completed ? flow.fct : age,
                   flow.ideal, completed});
  }
  return out;
}

// Payload delivered by `at`, between the ends of the series' intervals in proportion.
double delivered_bytes(const experiment::TimeSeries& series, Picos at) {
  const auto& values = series[experiment::Signal::delivered];
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Picos begin = series.interval * static_cast<std::int64_t>(i);
    const Picos end = earlier(begin + series.interval, series.end);
    const auto part = static_cast<double>(std::clamp<std::int64_t>(
        (at - begin).count, 0, std::max<std::int64_t>((end - begin).count, 1)));
    sum += static_cast<double>(values[i]) * part /
           static_cast<double>(std::max<std::int64_t>((end - begin).count, 1));
  }
  return sum;
}

double efficiency_of(const PreparedScenario& prepared, const ScenarioRun& run,
                     const std::vector<league::Message>& messages) {
  const config::WorkloadConfig& workload = prepared.scenario.workload;
  if (workload.kind == "open_loop") {
    const double most = league::deliverable_bytes(messages, workload.window);
    return most > 0 ? delivered_bytes(run.series, workload.window) / most : league::Summary::kNone;
  }
  if (workload.kind == "flows") return league::makespan_efficiency(messages);
  return run.result.metrics[Metric::collective_efficiency];
}

// Data of a run that the league keeps.
league::Run league_run_of(const PreparedScenario& prepared, const ScenarioRun& run) {
  league::Run out;
  out.scenario = prepared.scenario.name;
  out.seed = run.result.seed;
  out.status = run.result.status;
  out.reason = run.result.reason;
  out.messages = run.flows.size();
  out.trace_hash = run.result.trace_hash;
  const std::vector<league::Message> messages = messages_of(run);
  league::Measures& m = out.measures;
  league::slowdown_measures(messages, m);
  if (!messages.empty()) m[Measure::efficiency] = efficiency_of(prepared, run, messages);
  const experiment::MetricValues& from = run.result.metrics;
  m[Measure::goodput_gbps] = from[Metric::goodput_gbps];
  m[Measure::queue_max_bytes] = static_cast<double>(run.queues.max_bytes);
  m[Measure::queue_mean_bytes] = run.queues.mean_bytes;
  m[Measure::pause_us] = from[Metric::pfc_pause_us];
  m[Measure::drops] = from[Metric::drops];
  m[Measure::retransmitted_bytes] = from[Metric::retransmitted_bytes];
  m[Measure::jain_fairness] = from[Metric::jain_fairness];
  m[Measure::control_overhead] = from[Metric::control_overhead];
  out.course = league::course_of(run.series);
  league::round_run(out);
  return out;
}

// For each cell a hash of everything that determines its runs.
std::vector<std::uint64_t> keys_of(const league::Plan& plan) {
  std::vector<std::uint64_t> keys;
  InputKeys inputs;
  for (std::size_t c = 0; c < plan.cells.size(); ++c) {
    keys.push_back(ContentHash()
                       .number(program_key())
                       .field(plan.cells[c].name)
                       .field(plan.entries[c % plan.entries.size()].name)
                       .number(inputs.of_scenario(plan.cells[c]))
                       .value());
  }
  return keys;
}

}  // namespace

LeagueTasks::LeagueTasks(const league::Plan& plan, const std::vector<PreparedScenario>& prepared)
    : plan_(plan),
      prepared_(prepared),
      planned_(experiment::paired_replay(static_cast<std::uint32_t>(plan.scenarios.size()),
                                         static_cast<std::uint32_t>(plan.entries.size()),
                                         plan.repetitions, plan.seed)),
      cell_keys_(keys_of(plan)),
      runs_(plan.cells.size() * plan.repetitions) {}

experiment::WorkUnit LeagueTasks::unit(std::size_t task) const {
  return {static_cast<std::uint32_t>(cell(task)), 1};
}

std::string LeagueTasks::name(std::size_t task) const {
  const experiment::PlannedRun& run = planned_[task];
  return fmt::format("scenario '{}' under '{}', repetition {}", plan_.scenarios[run.scenario].name,
                     plan_.entries[run.arm].name, run.repetition);
}

std::uint64_t LeagueTasks::task_key(std::size_t task) const {
  const experiment::PlannedRun& run = planned_[task];
  return ContentHash()
      .number(cell_keys_[cell(task)])
      .number(run.repetition)
      .number(run.seed)
      .value();
}

TaskRecord LeagueTasks::execute(std::size_t task, const std::atomic<bool>& stop) const {
  const experiment::PlannedRun& planned = planned_[task];
  const PreparedScenario& prepared = prepared_[cell(task)];
  RunControl control;
  control.stop = &stop;
  // The course of every run, not only of the first: open-loop efficiency is read off it.
  control.series = true;
  const ScenarioRun run = run_scenario(prepared, prepared.scenario.cc, planned.seed, control);
  if (run.end == RunEnd::stopped) return {"", run.result.hops};
  league::Run kept = league_run_of(prepared, run);
  kept.entry = plan_.entries[planned.arm].name;
  kept.repetition = planned.repetition;
  if (planned.repetition != 0) kept.course = {};
  return {league::run_line(kept), run.result.hops};
}

std::string LeagueTasks::keep(std::size_t task, std::string_view record) {
  auto run = league::parse_run_line(record);
  const experiment::PlannedRun& planned = planned_[task];
  if (!run || run->scenario != plan_.scenarios[planned.scenario].name ||
      run->entry != plan_.entries[planned.arm].name || run->repetition != planned.repetition ||
      run->seed != planned.seed) {
    return fmt::format("the record of {} cannot be used: it is not of this run", name(task));
  }
  runs_[cell(task) * plan_.repetitions + planned.repetition] = std::move(*run);
  return {};
}

}  // namespace paceline::tools
