#include "tools/collective/testbed_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/collective/bench_results.h"
#include "tools/collective/rank/part_runner.h"
#include "tools/collective/rank_group.h"
#include "tools/collective/testbed_ranks.h"
#include "tools/run/job_report.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::tools {

namespace {

std::vector<std::string> bench_rank_options(const TestbedPlan& plan, const std::string& schedule,
                                            std::size_t rank, const std::string& socket) {
  return {fmt::format("--rank={}", rank),
          fmt::format("--ranks={}", plan.nics.size()),
          fmt::format("--per-server={}", plan.per_server),
          fmt::format("--operation={}", plan.operation),
          fmt::format("--schedule={}", schedule),
          fmt::format("--bytes={}", fmt::join(plan.sizes, ",")),
          fmt::format("--iterations={}", plan.iterations),
          fmt::format("--chunk-bytes={}", plan.chunk_bytes),
          fmt::format("--window={}", plan.window),
          fmt::format("--meet={}", socket)};
}

// Returns the failures.
std::vector<std::string> run_group(const TestbedPlan& plan, const std::string& schedule,
                                   const std::atomic<bool>& stop, BenchResults& results) {
  RankGroup group(results);
  for (std::size_t r = 0; r < plan.nics.size(); ++r) {
    const std::string error =
        group.start(fmt::format("rank {} on {}", r, plan.nics[r]),
                    rank_command(plan.testbed, plan.nics[r],
                                 bench_rank_options(plan, schedule, r, group.socket())));
    if (!error.empty()) throw std::runtime_error(error);
  }
  return group.run(stop);
}

BenchRow row_of(const TestbedPlan& plan, const std::string& schedule, std::size_t size,
                const std::vector<RankResult>& ranks, std::vector<std::string>& failures) {
  BenchRow row;
  row.bytes = plan.sizes[size];
  row.schedule = schedule;
  if (ranks.empty()) {
    row.problem = "no result: a rank failed";
    return row;
  }
  row.right = true;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    row.took_us = std::max(row.took_us, ranks[r].mean_us);
    if (ranks[r].wrong == 0) continue;
    row.right = false;
    failures.push_back(fmt::format(
        "{} by {}, {} bytes: rank {} has {} wrong elements; the first is {}: expected {}, got {}",
        plan.operation, schedule, row.bytes, r, ranks[r].wrong, ranks[r].element, ranks[r].expected,
        ranks[r].got));
  }
  workload::JobPlan::Call call;
  call.op = *workload::find_collective_op(plan.operation);
  call.ranks = static_cast<std::uint32_t>(plan.nics.size());
  row.algorithm_gbytes = static_cast<double>(row.bytes) / row.took_us / 1e3;
  row.bus_gbytes = row.algorithm_gbytes * bus_factor(call);
  return row;
}

std::vector<std::string> plan_errors(const TestbedPlan& plan) {
  std::vector<std::string> errors;
  const workload::CollectiveOp op = *workload::find_collective_op(plan.operation);
  const workload::GroupShape shape{static_cast<std::uint32_t>(plan.nics.size()), plan.per_server};
  for (const std::string& schedule : plan.schedules) {
    const auto made = workload::make_schedule(op, schedule, shape);
    errors.insert(errors.end(), made.errors.begin(), made.errors.end());
  }
  for (const std::uint64_t bytes : plan.sizes) {
    if (bytes % sizeof(float) == 0) continue;
    errors.push_back(
        fmt::format("{} bytes: expected a multiple of 4, for the data is float32", bytes));
  }
  if (plan.window > rank::kMostWindow) {
    errors.push_back(fmt::format("workload.job.window = {}: on a testbed allowed is [1 .. {}]",
                                 plan.window, rank::kMostWindow));
  }
  if (plan.chunk_bytes < sizeof(float)) {
    errors.push_back(fmt::format("workload.job.chunk_bytes = {}: on a testbed expected 4 or more",
                                 plan.chunk_bytes));
  }
  const std::vector<std::string> missing = rank_program_errors();
  errors.insert(errors.end(), missing.begin(), missing.end());
  return errors;
}

}  // namespace

config::Read<TestbedRows> run_testbed_bench(
    const TestbedPlan& plan, const std::atomic<bool>& stop,
    const std::function<void(const BenchProgress&)>& progress) {
  config::Read<TestbedRows> out;
  out.errors = plan_errors(plan);
  if (!out.ok()) return out;
  BenchProgress at;
  at.all = static_cast<std::uint32_t>(plan.schedules.size());
  for (const std::string& schedule : plan.schedules) {
    at.what = schedule;
    progress(at);
    BenchResults results(static_cast<std::uint32_t>(plan.nics.size()),
                         static_cast<std::uint32_t>(plan.sizes.size()));
    std::vector<std::string> failures;
    try {
      failures = run_group(plan, schedule, stop, results);
    } catch (const std::runtime_error& error) {
      return {{}, {error.what()}};
    }
    if (stop.load(std::memory_order_relaxed)) break;
    ++at.done;
    for (const std::string& failure : failures) {
      out.value.failures.push_back(fmt::format("{} by {}: {}", plan.operation, schedule, failure));
    }
    for (std::uint32_t size = 0; size < plan.sizes.size(); ++size) {
      out.value.rows.push_back(
          row_of(plan, schedule, size, results.of_size(size), out.value.failures));
    }
  }
  std::stable_sort(out.value.rows.begin(), out.value.rows.end(),
                   [](const BenchRow& a, const BenchRow& b) { return a.bytes < b.bytes; });
  mark_best(out.value.rows);
  return out;
}

std::string testbed_text(const TestbedPlan& plan, const std::vector<BenchRow>& rows) {
  return fmt::format(
             "{} of {} ranks over verbs, testbed {}, {} to {}, data compared\n"
             "{} iterations after one to warm up; size is a rank's whole buffer, * the fastest of "
             "a size\n\n",
             plan.operation, plan.nics.size(), plan.testbed, plan.nics.front(), plan.nics.back(),
             plan.iterations) +
         bench_table(rows);
}

std::string testbed_json(const TestbedPlan& plan, const std::vector<BenchRow>& rows) {
  nlohmann::ordered_json json;
  json["schema"] = 1;
  json["kind"] = "paceline collective bench";
  json["testbed"] = plan.testbed;
  json["operation"] = plan.operation;
  json["ranks"] = plan.nics.size();
  json["iterations"] = plan.iterations;
  json["rows"] = bench_json_rows(rows);
  return json.dump(1) + "\n";
}

}  // namespace paceline::tools
