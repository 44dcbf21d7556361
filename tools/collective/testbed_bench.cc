#include "tools/collective/testbed_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tools/collective/rank/part_runner.h"
#include "tools/collective/rank_group.h"
#include "tools/run/job_report.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::tools {

namespace {

constexpr const char* kRankProgram = "paceline-rank";

std::filesystem::path own_file() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

// What a command of this program prints; the exit status, or -1.
int output_of(std::vector<std::string> command, std::string& text) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return -1;
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::array<char, 4096> some;
  for (ssize_t n; child > 0 && (n = ::read(ends[0], some.data(), some.size())) > 0;) {
    text.append(some.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// Which service a command is for, by the rule of `paceline exec`.
std::string service_option(const std::string& testbed) {
  const char* const socket = std::getenv("PACELINE_SOCKET");
  if (testbed == kDefaultTestbed && socket != nullptr && *socket != 0) {
    return fmt::format("--socket={}", socket);
  }
  return fmt::format("--name={}", testbed);
}

std::vector<std::string> rank_command(const TestbedPlan& plan, const std::string& schedule,
                                      std::size_t rank, const std::string& socket) {
  const std::filesystem::path self = own_file();
  return {self.string(),
          "exec",
          service_option(plan.testbed),
          "--nic",
          plan.nics[rank],
          "--no-files",
          "--",
          (self.parent_path() / kRankProgram).string(),
          fmt::format("--rank={}", rank),
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

GroupResult run_group(const TestbedPlan& plan, const std::string& schedule,
                      const std::atomic<bool>& stop) {
  RankGroup group(static_cast<std::uint32_t>(plan.sizes.size()));
  for (std::size_t r = 0; r < plan.nics.size(); ++r) {
    const std::string error = group.start(fmt::format("rank {} on {}", r, plan.nics[r]),
                                          rank_command(plan, schedule, r, group.socket()));
    if (!error.empty()) throw std::runtime_error(error);
  }
  return group.run(stop);
}

BenchRow row_of(const TestbedPlan& plan, const std::string& schedule, std::size_t size,
                const GroupResult& result, std::vector<std::string>& failures) {
  BenchRow row;
  row.bytes = plan.sizes[size];
  row.schedule = schedule;
  const std::vector<RankResult>& ranks = result.sizes[size];
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
  const std::string program = (own_file().parent_path() / kRankProgram).string();
  if (::access(program.c_str(), X_OK) != 0) {
    errors.push_back(
        fmt::format("{}: missing; it is built where libibverbs is installed", program));
  }
  return errors;
}

}  // namespace

config::Read<std::vector<std::string>> testbed_nics(const std::string& testbed) {
  std::string text;
  config::Read<std::vector<std::string>> out;
  if (output_of({own_file().string(), "testbed", "status", "--json", service_option(testbed)},
                text) != 0) {
    return out;
  }
  const auto status = nlohmann::json::parse(text, nullptr, false);
  try {
    for (const auto& set : status.at("workers")) {
      for (const auto& nic : set.at("nics")) out.value.push_back(nic.at("name"));
    }
  } catch (const nlohmann::json::exception& error) {
    out.errors.push_back(fmt::format("the status of testbed {}: {}", testbed, error.what()));
  }
  return out;
}

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
    GroupResult result;
    try {
      result = run_group(plan, schedule, stop);
    } catch (const std::runtime_error& error) {
      return {{}, {error.what()}};
    }
    if (stop.load(std::memory_order_relaxed)) break;
    ++at.done;
    for (const std::string& failure : result.failures) {
      out.value.failures.push_back(fmt::format("{} by {}: {}", plan.operation, schedule, failure));
    }
    for (std::size_t size = 0; size < plan.sizes.size(); ++size) {
      out.value.rows.push_back(row_of(plan, schedule, size, result, out.value.failures));
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
