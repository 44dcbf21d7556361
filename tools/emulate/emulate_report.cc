#include "tools/emulate/emulate_report.h"
#include "tools/emulate/probe_text.h"
#include "tools/run/job_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "control/experiment/metrics.h"
#include "dataplane/wire/packet/parse_error.h"

namespace paceline::tools {

namespace {

using experiment::Unit;

std::string bytes_text(double bytes) {
  if (bytes >= 1e9) return fmt::format("{:.2f} GB", bytes / 1e9);
  if (bytes >= 1e6) return fmt::format("{:.2f} MB", bytes / 1e6);
  if (bytes >= 1e3) return fmt::format("{:.1f} kB", bytes / 1e3);
  return fmt::format("{:.0f} B", bytes);
}

std::string value_text(const experiment::MetricSpec& spec, double value) {
  switch (spec.unit) {
    case Unit::share:
      return fmt::format("{:.2f} %", value * 100);
    case Unit::gbps:
      return fmt::format("{:.2f} Gb/s", value);
    case Unit::micros:
      return fmt::format("{:.2f} us", value);
    case Unit::bytes:
      return bytes_text(value);
    case Unit::packets:
      return fmt::format("{:.0f}", value);
    case Unit::none:
      return fmt::format("{:.3f}", value);
  }
  return {};
}

}  // namespace

std::string emulation_text(const config::Scenario& scenario, const ScenarioRun& run) {
  const experiment::RunResult& r = run.result;
  std::string text =
      fmt::format("scenario   {}: {} hosts, {:g} Gb/s, {} under {} ({}), seed {}\n", scenario.name,
                  scenario.fabric.hosts, static_cast<double>(scenario.fabric.rate.bps) / 1e9,
                  scenario.workload.kind, scenario.cc.algorithm, scenario.cc.profile, r.seed);
  text += fmt::format("run        {}: {} of {} messages in {:.3f} us of {} time\n",
                      experiment::to_text(r.status), r.messages_completed, run.flows.size(),
                      static_cast<double>(r.simulated.count) / 1e6,
                      run.real_time.turns == 0 ? "virtual" : "real");
  for (const experiment::MetricSpec& spec : experiment::metric_table()) {
    const double value = r.metrics[spec.metric];
    if (std::isnan(value)) continue;
    text += fmt::format("  {:<24} {:>14}{}\n", spec.label, value_text(spec, value),
                        spec.metric == experiment::Metric::deepest_queue_bytes
                            ? "  " + run.queues.deepest_port
                            : "");
  }
  if (scenario.fabric.nics > 1) {
    text += fmt::format(
        "rails      {} servers of {} NICs: {} by NVLink, {} by NICs, {:.2f} % of it to another "
        "rail\n",
        scenario.fabric.hosts / scenario.fabric.nics, scenario.fabric.nics,
        bytes_text(static_cast<double>(run.rails.nvlink_bytes)),
        bytes_text(static_cast<double>(run.rails.nic_bytes)), 100 * run.rails.cross_rail_share());
  }
  if (!run.probes.pairs.empty()) text += probe_text(run.probes);
  if (run.job) text += job_text(*run.job);
  text += fmt::format("trace hash {:016x}\n", r.trace_hash);
  return text;
}

nlohmann::ordered_json real_time_json(const RealTimeReport& report) {
  nlohmann::ordered_json json;
  json["credible"] = report.credible();
  json["elapsed_ps"] = report.elapsed.count;
  json["waited_ps"] = report.waited.count;
  json["turns"] = report.turns;
  json["on_stop"] = report.on_stop == OnStop::hold ? "hold" : "run_on";
  json["stop_threshold_ps"] = report.stop_threshold.count;
  json["stops"] = report.stop_count;
  json["stopped_ps"] = report.stopped.count;
  json["longest_stop_ps"] = report.longest_stop.count;
  json["tolerance_ps"] = report.tolerance.count;
  json["late_ps"] = report.late.count;
  nlohmann::ordered_json& late = json["lateness_ns"];
  late["count"] = report.lateness_ns.count();
  for (const auto& [name, q] :
       {std::pair{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}, {"p99.9", 0.999}, {"max", 1.0}}) {
    late[name] = report.lateness_ns.quantile(q);
  }
  return json;
}

std::string real_time_text(const RealTimeReport& report) {
  const auto micros = [](Picos time) { return static_cast<double>(time.count) / 1e6; };
  const Histogram& late = report.lateness_ns;
  const auto quantile = [&late](double q) { return static_cast<double>(late.quantile(q)) / 1e3; };
  const double elapsed = std::max(micros(report.elapsed), 1e-6);
  std::string text =
      fmt::format("real time  {:.3f} s by the clock, {:.1f} % of it waiting; {} turns\n",
                  elapsed / 1e6, 100 * micros(report.waited) / elapsed, report.turns);
  text += fmt::format(
      "lateness   p50 {:.1f} us, p90 {:.1f}, p99 {:.1f}, p99.9 {:.1f}, most {:.1f} ({} polls of "
      "hosts)\n",
      quantile(0.5), quantile(0.9), quantile(0.99), quantile(0.999), quantile(1), late.count());
  text += fmt::format(
      "stops      {} of the host longer than {:.0f} us, {:.3f} ms in all, {:.3f} ms the "
      "longest{}\n",
      report.stop_count, micros(report.stop_threshold), micros(report.stopped) / 1e3,
      micros(report.longest_stop) / 1e3,
      report.on_stop == OnStop::hold ? "; the world's clock was held" : "");
  text += fmt::format(
      "verdict    {}: a host was more than {:.0f} us late for {:.2f} % of the time (allowed is "
      "{:.0f} %)\n",
      report.credible() ? "to be believed" : "NOT to be believed", micros(report.tolerance),
      100 * report.late_share(), 100 * RealTimeReport::kMostLate);
  return text;
}

std::string emulation_json(const config::Scenario& scenario, const ScenarioRun& run) {
  using Json = nlohmann::ordered_json;
  const experiment::RunResult& r = run.result;
  Json json;
  json["schema"] = 1;
  json["kind"] = "paceline emulation";
  json["scenario"] = scenario.name;
  json["seed"] = r.seed;
  json["algorithm"] = scenario.cc.algorithm;
  json["profile"] = scenario.cc.profile;
  json["hosts"] = scenario.fabric.hosts;
  json["status"] = experiment::to_text(r.status);
  json["end"] = to_string(run.end);
  json["reason"] = r.reason;
  Json& totals = json["totals"];
  totals["messages"] = run.flows.size();
  totals["messages_started"] = r.messages_started;
  totals["messages_completed"] = r.messages_completed;
  totals["simulated_ps"] = r.simulated.count;
  totals["hops"] = r.hops;
  totals["events"] = r.events;
  totals["trace_hash"] = fmt::format("{:016x}", r.trace_hash);
  Json& metrics = json["metrics"];
  for (const experiment::MetricSpec& spec : experiment::metric_table()) {
    const double value = r.metrics[spec.metric];
    if (std::isnan(value)) {
      metrics[std::string(spec.name)] = nullptr;
    } else {
      metrics[std::string(spec.name)] = value;
    }
  }
  if (run.real_time.turns != 0) json["real_time"] = real_time_json(run.real_time);
  if (scenario.fabric.nics > 1) {
    Json& rails = json["rails"];
    rails["nics_per_server"] = scenario.fabric.nics;
    rails["nvlink_bytes"] = run.rails.nvlink_bytes;
    rails["nic_bytes"] = run.rails.nic_bytes;
    rails["cross_rail_bytes"] = run.rails.cross_rail_bytes;
    rails["cross_rail_share"] = run.rails.cross_rail_share();
  }
  if (!run.probes.pairs.empty()) json["probing"] = probe_json(run.probes);
  if (run.job) json["job"] = job_json(*run.job);
  const fabric::NetworkStats& n = run.network;
  Json& network = json["network"];
  network["hop_bytes"] = n.hop_bytes;
  network["injected_packets"] = n.injected_packets;
  network["injected_bytes"] = n.injected_bytes;
  network["delivered_packets"] = n.delivered_packets;
  network["delivered_bytes"] = n.delivered_bytes;
  network["marked_packets"] = n.marked_packets;
  if (n.notices != 0) network["notices"] = n.notices;
  network["trimmed_packets"] = n.trimmed_packets;
  network["trimmed_bytes"] = n.trimmed_bytes;
  network["corrupted_packets"] = n.corrupted_packets;
  network["pause_frames"] = n.pause_frames;
  network["resume_frames"] = n.resume_frames;
  if (n.credit_updates != 0) network["credit_updates"] = n.credit_updates;
  network["pause_ps"] = n.pause_time.count;
  network["buffer_used_max_bytes"] = n.buffer_used_max;
  network["deepest_queue_bytes"] = run.queues.max_bytes;
  network["deepest_queue_port"] = run.queues.deepest_port;
  for (std::size_t i = 0; i < fabric::kDropReasons; ++i) {
    network["drops"][fabric::to_string(static_cast<fabric::DropReason>(i))] = n.drops[i];
  }
  Json& counters = json["counters"];
  telemetry::for_each(run.counters, [&counters](std::string_view name, std::uint64_t value) {
    if (name == "notices_received" && value == 0) return;  // of few fabrics, as credit updates are
    counters[std::string(name)] = value;
  });
  for (std::size_t i = 1; i < wire::kParseErrors; ++i) {
    const auto error = static_cast<wire::ParseError>(i);
    counters["malformed"][std::string(wire::parse_error_name(error))] = run.counters.malformed[i];
  }
  return json.dump(2) + "\n";
}

std::string flows_csv(const ScenarioRun& run) {
  std::string text = "id,src,dst,bytes,start_ns,fct_ns,ideal_ns\n";
  for (std::size_t id = 0; id < run.flows.size(); ++id) {
    const FlowRow& flow = run.flows[id];
    const bool done = flow.fct.count >= 0 && !flow.failed;
    text += fmt::format(
        "{},{},{},{},{},{},{}\n", id, flow.src, flow.dst, flow.bytes, flow.start.count / 1000,
        done ? std::to_string(flow.fct.count / 1000) : std::string(), flow.ideal.count / 1000);
  }
  return text;
}

std::string series_csv(const ScenarioRun& run) {
  const experiment::TimeSeries& series = run.series;
  std::string text = "until_ns";
  for (const experiment::SignalSpec& spec : experiment::signal_table()) {
    text += fmt::format(",{}", spec.name);
  }
  text += '\n';
  for (std::size_t i = 0; i < series.size(); ++i) {
    const Picos until = earlier(series.end, series.interval * static_cast<std::int64_t>(i + 1));
    text += fmt::format("{}", until.count / 1000);
    for (const auto& values : series.values) text += fmt::format(",{}", values[i]);
    text += '\n';
  }
  return text;
}

}  // namespace paceline::tools
