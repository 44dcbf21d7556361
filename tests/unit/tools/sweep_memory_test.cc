// The memory that gathering the records of a sweep takes: at most 1 GiB for a million.
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>

#include "control/sweep/results.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tests/unit/tools/command.h"
#include "tools/cli/cli.h"
#include "tools/run/run_record.h"
#include "tools/sweep/sweep_tasks.h"
#include "tools/task/input_keys.h"
#include "tools/task/kept_tasks.h"
#include "tools/task/record_line.h"

namespace paceline::tools::sweep_memory_test {
namespace {

constexpr double kMostBytesEach = 1024.0 * 1024 * 1024 / 1e6;
constexpr double kFixed = 8.0 * 1024 * 1024;  // pieces of texts

// The most memory that this process has used since the call before, in bytes.
double peak_memory() {
  std::ifstream status("/proc/self/status");
  std::string line;
  double kilobytes = 0;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) kilobytes = std::stod(line.substr(6));
  }
  std::ofstream("/proc/self/clear_refs") << "5";
  return kilobytes * 1024;
}

// The records of all points, with figures that look like some.
void write_records(const sweep::Plan& plan, const config::ReaderOptions& reader,
                   const std::string& file) {
  const SweepTasks tasks(plan, reader);
  const std::uint64_t key = tasks.key();
  std::ofstream out(file);
  Random random(1);
  experiment::RunResult result;
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    for (const experiment::MetricSpec& spec : experiment::metric_table()) {
      result.metrics[spec.metric] = random.uniform();
    }
    result.trace_hash = random.next();
    out << record_line({program_key(), key, task, tasks.task_key(task), result_text(result)});
  }
}

// Gathers the records of `side` x `side` points.
void gather_records(int side) {
  const Folder folder;
  std::string values;
  for (int i = 0; i < side; ++i) values += fmt::format("{}{}", i == 0 ? "" : ", ", i + 1);
  folder.write("big.toml", fmt::format("[workload]\nkind = \"incast\"\n[sweep.grid]\n"
                                       "max_hops = [{0}]\nworkload.message_bytes = [{0}]\n",
                                       values));
  const config::ReaderOptions reader = reader_options();
  const auto plan = sweep::read_plan_file(folder.path("big.toml"), reader);
  REQUIRE(plan.errors == std::vector<std::string>{});
  const std::string file = folder.path("1-of-1.jsonl");
  // By another process, so that none of its memory is left for this one.
  const pid_t writer = ::fork();
  if (writer == 0) {
    write_records(plan.value, reader, file);
    ::_exit(0);
  }
  int status = -1;
  REQUIRE(::waitpid(writer, &status, 0) == writer);
  REQUIRE(status == 0);

  static_cast<void>(peak_memory());
  const double before = peak_memory();
  const double begin = thread_cpu_seconds();
  SweepTasks tasks(plan.value, reader);
  KeptTasks kept(tasks);
  REQUIRE(kept.take_all(file) == std::vector<std::string>{});
  REQUIRE(kept.whole());
  sweep::Results results;
  results.plan = plan.value;
  results.runs = tasks.take_runs();
  std::size_t bytes = 0;
  write_json(results, [&](std::string_view piece) { bytes += piece.size(); });
  write_csv(results, [&](std::string_view piece) { bytes += piece.size(); });
  const double most = peak_memory() - before;
  fmt::print("{} records: {:.1f} MB of memory, {:.0f} MB of results, {:.1f} s of processor\n",
             tasks.size(), most / 1e6, static_cast<double>(bytes) / 1e6,
             thread_cpu_seconds() - begin);
  CHECK(most < kFixed + kMostBytesEach * static_cast<double>(tasks.size()));
}

TEST_CASE("records: those of a sweep are gathered in little memory",
          "[records][peak-memory][slow]") {
  gather_records(120);
}

TEST_CASE("records: a million of a sweep are gathered in 1 GiB", "[.million-records]") {
  gather_records(1000);
}

}  // namespace
}  // namespace paceline::tools::sweep_memory_test
