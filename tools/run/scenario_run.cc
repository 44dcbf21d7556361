#include "tools/run/scenario_run.h"

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "cc/registry.h"
#include "dataplane/driver/scenario/plugin_watch.h"
#include "dataplane/driver/traffic/fabric_ideal.h"
#include "tools/run/link_names.h"
#include "tools/run/run_metrics.h"
#include "tools/run/run_series.h"

namespace paceline::tools {

namespace {

experiment::RunStatus status_of(RunEnd end, std::uint64_t failed) {
  switch (end) {
    case RunEnd::completed:
      return failed == 0 ? experiment::RunStatus::ok : experiment::RunStatus::failed;
    case RunEnd::duration:
      return failed == 0 ? experiment::RunStatus::ok : experiment::RunStatus::failed;
    case RunEnd::hop_limit:
    case RunEnd::stopped:
      return experiment::RunStatus::unfinished;
    case RunEnd::stalled:
    case RunEnd::violation:
      return experiment::RunStatus::failed;
  }
  return experiment::RunStatus::failed;
}

std::string port_name(const PreparedScenario& prepared, std::uint32_t directed) {
  const NamedLink link = link_name(prepared.scenario, prepared.inputs.numbers, directed / 2);
  const bool forward = directed % 2 == 0;
  const std::size_t parallel = link.name.find('#');
  return (forward ? link.first : link.second) + " to " + (forward ? link.second : link.first) +
         (parallel == std::string::npos ? "" : " " + link.name.substr(parallel));
}

QueueDepths queue_depths(const fabric::Network& network, const PreparedScenario& prepared) {
  QueueDepths depths;
  std::uint32_t deepest = 0;
  for (std::uint32_t link = 0; link < network.links(); ++link) {
    const auto stats = network.egress_stats(link);
    if (!stats) continue;
    if (stats->max_bytes > depths.max_bytes) deepest = link;
    depths.max_bytes = std::max(depths.max_bytes, stats->max_bytes);
    depths.mean_bytes = std::max(depths.mean_bytes, stats->mean_bytes);
  }
  if (depths.max_bytes != 0) depths.deepest_port = port_name(prepared, deepest);
  return depths;
}

std::vector<FlowRow> flow_rows(const VirtualWorld& world, const config::Scenario& scenario,
                               const workload::NodeNumbers& numbers) {
  const FabricIdeal yardstick(scenario, world.network().spec(), world.network().topology());
  const std::vector<PlannedMessage>& messages = world.plan().messages;
  std::vector<bool> is_first_part(messages.size());
  for (const PlannedMessage& m : messages) {
    if (m.relays) is_first_part[m.after] = true;
  }
  std::vector<FlowRow> rows;
  rows.reserve(messages.size());
  for (std::uint32_t id = 0; id < messages.size(); ++id) {
    if (is_first_part[id] || messages[id].computes) continue;
    const PlannedMessage& message = messages[id];
    const PlannedMessage& first = message.relays ? messages[message.after] : message;
    const Picos ready = world.records()[message.relays ? message.after : id].ready;
    const MessageRecord& record = world.records()[id];
    FlowRow row;
    row.src = numbers.number(first.src);
    row.dst = numbers.number(message.dst);
    row.message = id;
    row.bytes = message.bytes;
    row.start = ready.count < 0 ? first.start : ready;
    row.ideal = yardstick.fct(world.plan(), message);
    row.started = ready.count >= 0;
    row.failed = record.failed;
    if (record.completed.count >= 0) row.fct = record.completed - row.start;
    rows.push_back(row);
  }
  return rows;
}

template <class Made>
Made value_of(config::Read<Made> read) {
  if (!read.ok()) throw std::invalid_argument(read.errors.front());
  return std::move(read.value);
}

// `job`: set where the workload is one, without its messages.
MessagePlan plan_of(const config::Scenario& scenario, const workload::WorkloadInputs& inputs,
                    std::uint64_t seed, std::optional<workload::JobPlan>& job) {
  if (scenario.workload.kind != "job") return value_of(make_plan(scenario, inputs, seed));
  job = value_of(make_job_plan(scenario, inputs, seed));
  return std::move(job->plan);
}

void job_metrics(const JobReport& job, experiment::MetricValues& metrics) {
  using experiment::Metric;
  if (job.took.count < 0) return;
  const auto micros = [](Picos time) { return static_cast<double>(time.count) / 1e6; };
  metrics[Metric::job_time_us] = micros(job.took);
  if (job.first_tokens.requests != 0) {
    metrics[Metric::first_token_p50_us] = job.first_tokens.p50_us;
    metrics[Metric::first_token_p99_us] = job.first_tokens.p99_us;
  }
  double exposed = 0;
  for (const RankTime& rank : job.ranks) exposed += micros(rank.communicating + rank.waiting);
  if (job.took.count > 0) {
    metrics[Metric::job_exposed_share] =
        exposed / micros(job.took) / static_cast<double>(job.ranks.size());
  }
  double efficiency = 0;
  double took = 0;
  for (const CollectiveTime& call : job.calls) {
    if (call.took().count <= 0) continue;
    took += micros(call.took());
    efficiency += micros(call.ideal) / micros(call.took());
  }
  if (took == 0) return;
  const auto n = static_cast<double>(job.calls.size());
  metrics[Metric::collective_efficiency] = efficiency / n;
  metrics[Metric::collective_time_us] = took / n;
}

}  // namespace

config::Read<PreparedScenario> prepare(config::Scenario scenario) {
  config::Read<PreparedScenario> out;
  auto inputs = workload::load_inputs(scenario);
  out.errors = std::move(inputs.errors);
  out.value.scenario = std::move(scenario);
  out.value.inputs = std::move(inputs.value);
  return out;
}

ScenarioRun run_scenario(const PreparedScenario& prepared, const config::CcConfig& cc,
                         std::uint64_t seed, const RunControl& control) {
  config::Scenario scenario = prepared.scenario;
  scenario.cc = cc;
  scenario.seed = seed;
  std::optional<workload::JobPlan> job;
  MessagePlan plan = plan_of(scenario, prepared.inputs, seed, job);
  plan.limits = job.has_value();
  WorldOptions options;
  options.check_invariants = control.check_invariants;
  options.exact_departures = control.exact_departures;
  options.stop = control.stop;
  options.progress = control.progress;
  options.taps = control.taps;
  options.threads = control.threads;
  options.real_time = control.real_time;
  std::optional<PluginTimeLimit> limit;
  const cc::AlgorithmInfo* const algorithm = cc::find(cc.algorithm);
  if (algorithm != nullptr && cc::is_plugin(algorithm->id) && control.real_time.clock == nullptr) {
    limit.emplace();
    options.progress = [&control](double share) {
      PluginTimeLimit::passed();
      if (control.progress) control.progress(share);
    };
  }
  VirtualWorld* running = nullptr;
  SeriesRecorder recorder(first_look_distance(scenario, plan));
  if (control.series) {
    options.sample_interval = recorder.first_distance();
    options.sample = [&](const VirtualWorld&, Picos at) { recorder.look(*running, at); };
    options.restart = [&] { recorder = SeriesRecorder(recorder.first_distance()); };
  }
  if (control.sample) {
    options.sample_interval = control.sample_interval;
    options.sample = [&](const VirtualWorld&, Picos at) { control.sample(*running, at); };
  }
  VirtualWorld world(scenario, std::move(plan), std::move(options));
  running = &world;

  ScenarioRun run;
  run.end = world.run();
  if (control.series) {
    run.series = recorder.finish(world);
    run.series.seed = seed;
  }
  if (control.finished) control.finished(world);
  run.flows = flow_rows(world, scenario, prepared.inputs.numbers);
  run.rails = rail_traffic(world.plan(), world.records(), config::server_shape(scenario.fabric));
  for (std::uint32_t h = 0; h < world.hosts(); ++h) {
    run.counters += world.engine(h).counters();
  }
  run.network = world.network().stats();
  run.queues = queue_depths(world.network(), prepared);
  run.thread_use = world.thread_use();
  run.one_thread_because = world.one_thread_because();
  run.real_time = world.real_time();
  run.probes = report_probes(world);

  experiment::RunResult& result = run.result;
  result.scenario = scenario.name;
  result.seed = seed;
  result.status = status_of(run.end, world.messages_failed());
  if (!world.problem().empty()) {
    result.reason = world.problem();
  } else if (world.messages_failed() != 0) {
    result.reason = std::to_string(world.messages_failed()) + " messages failed";
  } else if (run.end != RunEnd::completed) {
    result.reason = to_string(run.end);
  }
  if (result.status != experiment::RunStatus::failed) {
    run.distribution = distribution_of(world, run.flows);
  }
  result.metrics = measure(world, run.flows, run.counters);
  if (job) {
    run.job = report_job(prepared.inputs.job, *job, world);
    job_metrics(*run.job, result.metrics);
    run.job_plan = std::move(*job);
  }
  const fabric::FabricSpec& spec = world.network().spec();
  const bool tiers = std::any_of(spec.links.begin(), spec.links.end(), [&spec](const auto& link) {
    return link.a >= spec.hosts && link.b >= spec.hosts;
  });
  if (tiers) {
    result.metrics[experiment::Metric::deepest_queue_bytes] =
        static_cast<double>(run.queues.max_bytes);
  }
  for (const FlowRow& row : run.flows) {
    if (row.started) ++result.messages_started;
    if (row.fct.count >= 0 && !row.failed) ++result.messages_completed;
  }
  result.hops = run.network.hops;
  result.events = world.events();
  result.simulated = world.now();
  result.trace_hash = world.trace_hash();
  return run;
}

}  // namespace paceline::tools
