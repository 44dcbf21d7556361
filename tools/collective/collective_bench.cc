#include "tools/collective/collective_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "dataplane/config/toml/quantity.h"
#include "tools/collective/tune/tune_setting.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

namespace {

// A name of make_schedule, or a file of MSCCL XML.
void use_schedule(config::JobConfig& job, workload::CollectiveOp op, const std::string& schedule) {
  const bool is_file = schedule.ends_with(".xml");
  job.schedule_file = is_file ? schedule : "";
  schedule_key(job, op) = is_file ? "" : schedule;
}

void fill_row(const ScenarioRun& run, workload::CollectiveOp op, BenchRow& row) {
  if (run.result.status != experiment::RunStatus::ok || !run.job) {
    row.problem = run.result.reason.empty() ? "interrupted" : run.result.reason;
    return;
  }
  const auto& calls = run.job->calls;
  const auto counted = static_cast<double>(calls.size() - 1);
  for (std::size_t c = 1; c < calls.size(); ++c) {
    row.ideal_us += static_cast<double>(calls[c].ideal.count) / 1e6 / counted;
  }
  row.took_us = counted_mean_us(*run.job, op);
  const CollectiveKind& kind = run.job->kinds.front();
  row.algorithm_gbytes = static_cast<double>(row.bytes) / row.took_us / 1e3;
  row.bus_gbytes = row.algorithm_gbytes * bus_factor(kind.call);
  row.drops = static_cast<std::uint64_t>(run.result.metrics[experiment::Metric::drops]);
}

}  // namespace

config::Read<std::vector<BenchRow>> run_bench(
    const BenchPlan& plan, const std::atomic<bool>& stop,
    const std::function<void(const BenchProgress&)>& progress) {
  config::Read<std::vector<BenchRow>> out;
  const workload::CollectiveOp op = *workload::find_collective_op(plan.operation);
  BenchProgress at;
  at.all = static_cast<std::uint32_t>(plan.sizes.size() * plan.schedules.size());
  for (const std::uint64_t bytes : plan.sizes) {
    for (const std::string& schedule : plan.schedules) {
      if (stop.load(std::memory_order_relaxed)) return out;
      config::Scenario scenario = plan.scenario;
      scenario.workload.job.operation = plan.operation;
      scenario.workload.job.bytes = bytes;
      scenario.workload.job.iterations = plan.iterations + 1;
      use_schedule(scenario.workload.job, op, schedule);
      auto prepared = prepare(std::move(scenario));
      if (!prepared.ok()) return {{}, std::move(prepared.errors)};
      BenchRow row;
      row.bytes = bytes;
      row.schedule = schedule;
      at.what = fmt::format("{} {}", config::format_bytes(bytes), schedule);
      RunControl control;
      control.stop = &stop;
      control.progress = [&](double share) {
        at.share = share;
        progress(at);
      };
      try {
        fill_row(run_scenario(prepared.value, prepared.value.scenario.cc,
                              prepared.value.scenario.seed, control),
                 op, row);
      } catch (const std::invalid_argument& error) {
        return {{}, {error.what()}};
      }
      ++at.done;
      at.share = 0;
      progress(at);
      if (!stop.load(std::memory_order_relaxed)) out.value.push_back(std::move(row));
    }
  }
  mark_best(out.value);
  return out;
}

std::vector<std::string> possible_schedules(const std::string& operation, std::uint32_t ranks,
                                            std::uint32_t per_server) {
  std::vector<std::string> names;
  const workload::CollectiveOp op = *workload::find_collective_op(operation);
  for (const std::string_view name : workload::schedule_names(op)) {
    if (workload::make_schedule(op, name, {ranks, per_server}).ok()) names.emplace_back(name);
  }
  return names;
}

void mark_best(std::vector<BenchRow>& rows) {
  for (BenchRow& row : rows) {
    row.best = row.problem.empty();
    for (const BenchRow& other : rows) {
      if (other.bytes == row.bytes && other.problem.empty() && other.took_us < row.took_us) {
        row.best = false;
      }
    }
  }
}

std::string bench_table(const std::vector<BenchRow>& rows) {
  const bool with_data = std::any_of(rows.begin(), rows.end(),
                                     [](const BenchRow& row) { return row.right.has_value(); });
  std::string text = fmt::format(
      "{:>10}  {:<22} {:>12} {:>10} {:>10} {:>8}{}\n{:>10}  {:<22} {:>12} {:>10} {:>10} {:>8}\n",
      "size", "schedule", "time", "algbw", "busbw", "of ideal", with_data ? "  data" : "", "", "",
      "us", "GB/s", "GB/s", "%");
  std::uint64_t last = 0;
  for (const BenchRow& row : rows) {
    const std::string size = row.bytes == last ? "" : config::format_bytes(row.bytes);
    last = row.bytes;
    if (!row.problem.empty()) {
      text += fmt::format("{:>10}  {:<22} {}\n", size, row.schedule, row.problem);
      continue;
    }
    const std::string ideal =
        row.ideal_us == 0 ? "" : fmt::format("{:.1f}", 100 * row.ideal_us / row.took_us);
    text += fmt::format("{:>10} {}{:<22} {:>12.2f} {:>10.3f} {:>10.3f} {:>8}{}{}\n", size,
                        row.best ? '*' : ' ', row.schedule, row.took_us, row.algorithm_gbytes,
                        row.bus_gbytes, ideal,
                        !row.right   ? ""
                        : *row.right ? "  right"
                                     : "  WRONG",
                        row.drops == 0 ? "" : fmt::format("  {} drops", row.drops));
  }
  return text;
}

nlohmann::ordered_json bench_json_rows(const std::vector<BenchRow>& rows) {
  auto out = nlohmann::ordered_json::array();
  for (const BenchRow& row : rows) {
    nlohmann::ordered_json& json = out.emplace_back();
    json["bytes"] = row.bytes;
    json["schedule"] = row.schedule;
    if (!row.problem.empty()) {
      json["problem"] = row.problem;
      continue;
    }
    json["time_us"] = row.took_us;
    if (row.ideal_us != 0) json["ideal_us"] = row.ideal_us;
    json["algbw_gbytes"] = row.algorithm_gbytes;
    json["busbw_gbytes"] = row.bus_gbytes;
    if (row.right) {
      json["data"] = *row.right ? "right" : "wrong";
    } else {
      json["drops"] = row.drops;
    }
    json["best"] = row.best;
  }
  return out;
}

std::string bench_text(const BenchPlan& plan, const std::vector<BenchRow>& rows) {
  const config::Scenario& s = plan.scenario;
  return fmt::format(
             "{} of {} ranks, {:g} Gb/s a NIC, {} ({}), virtual time, seed {}\n"
             "{} iterations after one to warm up; size is a rank's whole buffer, * the fastest of "
             "a size\n\n",
             plan.operation, s.fabric.hosts,
             static_cast<double>(s.fabric.rate.bps) * s.fabric.ports / 1e9, s.cc.algorithm,
             s.cc.profile, s.seed, plan.iterations) +
         bench_table(rows);
}

std::string bench_json(const BenchPlan& plan, const std::vector<BenchRow>& rows) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["kind"] = "paceline collective bench";
  json["scenario"] = plan.scenario.name;
  json["operation"] = plan.operation;
  json["ranks"] = plan.scenario.fabric.hosts;
  json["algorithm"] = plan.scenario.cc.algorithm;
  json["profile"] = plan.scenario.cc.profile;
  json["seed"] = plan.scenario.seed;
  json["iterations"] = plan.iterations;
  json["rows"] = bench_json_rows(rows);
  return json.dump(1) + "\n";
}

}  // namespace paceline::tools
