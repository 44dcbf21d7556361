#include "tools/task/task_threads.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

namespace paceline::tools {

void TaskThreads::run(TaskList& tasks, std::span<const std::size_t> wanted, unsigned jobs,
                      const std::atomic<bool>& stop, ProgressLine& line) {
  if (wanted.empty()) return;
  const double begin = wall_seconds();
  const auto threads_wanted = static_cast<unsigned>(std::min<std::size_t>(jobs, wanted.size()));
  std::vector<experiment::WorkUnit> units;
  for (const std::size_t task : wanted) units.push_back(tasks.unit(task));
  experiment::Progress progress(std::move(units), threads_wanted);
  const auto work = [&] {
    std::unique_lock lock(mutex_);
    while (next_ != wanted.size() && !stop.load() && error_.empty()) {
      const std::size_t place = next_++;
      progress.start(place, wall_seconds());
      lock.unlock();
      execute_one(tasks, wanted[place], stop);
      lock.lock();
      progress.finish(place, wall_seconds());
    }
    if (--alive_ == 0) ended_.notify_one();
  };
  next_ = 0;
  std::vector<std::thread> threads;
  alive_ = threads_wanted;
  for (unsigned i = 0; i < threads_wanted; ++i) threads.emplace_back(work);
  std::unique_lock lock(mutex_);
  // An estimate looks at every task: four a second, however short tasks are.
  while (!ended_.wait_for(lock, std::chrono::milliseconds(250), [&] { return alive_ == 0; })) {
    const experiment::ProgressEstimate now = progress.estimate(wall_seconds());
    line.show(now.fraction, now.seconds_left, fmt::format("{} of {} runs", now.done, now.total));
  }
  const experiment::ProgressEstimate now = progress.estimate(wall_seconds());
  line.show(now.fraction, now.seconds_left, fmt::format("{} of {} runs", now.done, now.total));
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  line.clear();
  wall_seconds_ += wall_seconds() - begin;
}

void TaskThreads::execute_one(TaskList& tasks, std::size_t task, const std::atomic<bool>& stop) {
  const double begin = thread_cpu_seconds();
  try {
    const TaskRecord done = tasks.execute(task, stop);
    const std::lock_guard lock(mutex_);
    if (!done.text.empty()) {
      const std::string problem = tasks.keep(task, done.text);
      if (!problem.empty() && error_.empty()) error_ = problem;
      if (problem.empty()) ++executed_;
    }
    hops_ += done.hops;
    cpu_seconds_ += thread_cpu_seconds() - begin;
  } catch (const std::invalid_argument& error) {
    const std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = tasks.name(task) + ": " + error.what();
  }
}

std::string speed_text(std::size_t runs, std::uint64_t hops, double cpu_seconds,
                       double wall_seconds) {
  const double millions = static_cast<double>(hops) / 1e6;
  return fmt::format("{} runs, {:.1f} M packet-hops in {}, {:.2f} M hops/s per core", runs,
                     millions, experiment::format_duration(wall_seconds), millions / cpu_seconds);
}

}  // namespace paceline::tools
