#include "tools/experiment/league_pool.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "control/experiment/design.h"
#include "dataplane/base/hash.h"

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

}  // namespace

LeaguePool::LeaguePool(const league::Plan& plan, const std::vector<PreparedScenario>& prepared,
                       LeagueStore& store)
    : plan_(plan), prepared_(prepared), store_(store), runs_(plan.cells.size() * plan.repetitions) {
  const std::vector<std::uint64_t> keys = cell_keys(plan);
  for (const experiment::PlannedRun& planned : experiment::paired_replay(
           static_cast<std::uint32_t>(plan.scenarios.size()),
           static_cast<std::uint32_t>(plan.entries.size()), plan.repetitions, plan.seed)) {
    Task task{plan.cell(planned.scenario, planned.arm), planned.repetition, planned.seed, 0};
    task.key = ContentHash()
                   .number(keys[task.cell])
                   .number(std::uint64_t{task.repetition})
                   .number(task.seed)
                   .value();
    if (const league::Run* known = store.find(task.key)) {
      place(task) = *known;
      ++reused_;
    } else {
      tasks_.push_back(task);
    }
  }
}

void LeaguePool::run(unsigned jobs, ProgressLine& line) {
  std::vector<experiment::WorkUnit> units;
  for (const Task& task : tasks_) units.push_back({static_cast<std::uint32_t>(task.cell), 1});
  pool_.run(
      units, jobs, line, [this](std::size_t run) { return execute(tasks_[run]); },
      [this](std::size_t run) {
        const std::size_t cell = tasks_[run].cell;
        return fmt::format("scenario '{}' under '{}'", prepared_[cell].scenario.name,
                           plan_.entries[cell % plan_.entries.size()].name);
      });
}

RunPool::Executed LeaguePool::execute(const Task& task) {
  const PreparedScenario& prepared = prepared_[task.cell];
  RunControl control;
  control.stop = &Interrupt::flag();
  // The course of every run, not only of the first: open-loop efficiency is read off it.
  control.series = true;
  const ScenarioRun run = run_scenario(prepared, prepared.scenario.cc, task.seed, control);
  auto kept = std::make_shared<league::Run>(league_run_of(prepared, run));
  kept->entry = plan_.entries[task.cell % plan_.entries.size()].name;
  kept->repetition = task.repetition;
  if (task.repetition != 0) kept->course = {};
  return {run.result.hops, run.end == RunEnd::stopped, [this, task, kept] {
            std::string problem = store_.add(task.key, *kept);
            place(task) = std::move(*kept);
            return problem;
          }};
}

}  // namespace paceline::tools
