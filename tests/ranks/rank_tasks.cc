// A command on ranks whose tasks do nothing, or sleep: what handing out and gathering cost, and
// that the records are whole whatever happens to the ranks.
//
// usage: rank_tasks TASKS MICROSECONDS [LISTS]
//
// Rank 0 prints a line of JSON: a hash of all records and the costs at rank 0. Every rank keeps the
// records of all lists but the last.
#include <chrono>
#include <cstdlib>
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "dataplane/base/hash.h"
#include "tools/cli/cli.h"
#include "tools/task/ranks/rank_team.h"

namespace {

using paceline::ContentHash;
using namespace paceline::tools;

class SleepingTasks final : public TaskList {
 public:
  SleepingTasks(std::size_t size, std::chrono::microseconds length)
      : records_(size), length_(length) {}

  std::size_t size() const override { return records_.size(); }
  paceline::experiment::WorkUnit unit(std::size_t) const override { return {0, 1}; }
  std::string name(std::size_t task) const override { return fmt::format("task {}", task); }
  std::uint64_t task_key(std::size_t task) const override {
    return ContentHash().number(task).number(length_.count()).value();
  }
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override {
    const auto end = std::chrono::steady_clock::now() + length_;
    while (length_.count() != 0 && std::chrono::steady_clock::now() < end) {
      if (stop.load()) return {};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return {fmt::format("{{\"task\":{}}}", task), 1};
  }
  std::string keep(std::size_t task, std::string_view record) override {
    if (!records_[task].empty()) return name(task) + " was kept twice";
    records_[task] = record;
    return {};
  }
  std::uint64_t hash() const {
    ContentHash hash;
    for (const std::string& record : records_) hash.field(record);
    return hash.value();
  }

 private:
  std::vector<std::string> records_;
  std::chrono::microseconds length_;
};

int run(std::size_t count, std::chrono::microseconds length, unsigned lists) {
  const Interrupt interrupt;
  const auto team = RankTeam::join(1);
  if (!team) {
    fmt::print(stderr, "rank_tasks: no MPI has started this process\n");
    return kExitBadInput;
  }
  if (team->ended()) return kExitGood;
  ContentHash hash;
  RankRun last;
  for (unsigned list = 0; list < lists; ++list) {
    SleepingTasks tasks(count + list, length);
    std::vector<std::size_t> wanted(tasks.size());
    for (std::size_t task = 0; task < wanted.size(); ++task) wanted[task] = task;
    const bool every = list + 1 < lists;
    last = team->run(tasks, wanted, every ? Keepers::every_rank : Keepers::first_rank, false);
    if (!last.error.empty()) return report_errors({last.error});
    for (const std::string& failure : last.failures) {
      fmt::print(stderr, "rank_tasks: {}\n", failure);
    }
    if (last.end == RankRun::End::interrupted) {
      return team->first() ? kExitInterrupted : kExitGood;
    }
    if (every) hash.number(tasks.hash());
    if (!team->first()) continue;
    if (!every) hash.number(tasks.hash());
  }
  if (!team->first()) return kExitGood;
  const RankCost cost = team->cost();
  const auto per_task = static_cast<double>(count);
  fmt::print(
      "{{\"hash\":\"{:016x}\",\"executed\":{},\"seconds\":{:.3f},"
      "\"cpu_us_per_task\":{:.2f},\"calls_per_task\":{:.3f},\"bytes_per_task\":{:.1f}}}\n",
      hash.value(), last.executed, last.wall_seconds, cost.cpu_seconds * 1e6 / per_task,
      static_cast<double>(cost.sockets.calls) / per_task,
      static_cast<double>(cost.sockets.bytes) / per_task);
  return last.failures.empty() ? kExitGood : kExitFailed;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || argc > 4) {
    fmt::print(stderr, "usage: rank_tasks TASKS MICROSECONDS [LISTS]\n");
    return kExitBadInput;
  }
  try {
    return run(std::strtoul(argv[1], nullptr, 10),
               std::chrono::microseconds(std::strtol(argv[2], nullptr, 10)),
               argc == 4 ? static_cast<unsigned>(std::strtoul(argv[3], nullptr, 10)) : 1);
  } catch (const std::exception& error) {
    fmt::print(stderr, "rank_tasks: {}\n", error.what());
    return kExitFailed;
  }
}
