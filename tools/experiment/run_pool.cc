#include "tools/experiment/run_pool.h"

#include <fmt/format.h>

#include <chrono>
#include <stdexcept>
#include <thread>

namespace paceline::tools {

void RunPool::run(const std::vector<experiment::WorkUnit>& units, unsigned jobs, ProgressLine& line,
                  const Execute& execute, const std::function<std::string(std::size_t)>& name) {
  if (units.empty()) return;
  const double begin = wall_seconds();
  experiment::Progress progress(units, jobs);
  const auto work = [&] {
    std::unique_lock lock(mutex_);
    while (next_ != units.size() && !Interrupt::flag().load() && error_.empty()) {
      const std::size_t run = next_++;
      progress.start(run, wall_seconds());
      lock.unlock();
      execute_one(run, execute, name);
      lock.lock();
      progress.finish(run, wall_seconds());
      changed_.notify_one();
    }
    --alive_;
    changed_.notify_one();
  };
  std::vector<std::thread> threads;
  alive_ = jobs;
  for (unsigned i = 0; i < jobs; ++i) threads.emplace_back(work);
  std::unique_lock lock(mutex_);
  while (alive_ != 0) {
    changed_.wait_for(lock, std::chrono::milliseconds(250));
    const experiment::ProgressEstimate now = progress.estimate(wall_seconds());
    line.show(now.fraction, now.seconds_left, fmt::format("{} of {} runs", now.done, now.total));
  }
  lock.unlock();
  for (std::thread& thread : threads) thread.join();
  line.clear();
  wall_seconds_ = wall_seconds() - begin;
}

std::string RunPool::speed_text() const {
  const double millions = static_cast<double>(hops_) / 1e6;
  return fmt::format("{} runs, {:.1f} M packet-hops in {}, {:.2f} M hops/s per core", executed_,
                     millions, experiment::format_duration(wall_seconds_), millions / cpu_seconds_);
}

void RunPool::execute_one(std::size_t run, const Execute& execute,
                          const std::function<std::string(std::size_t)>& name) {
  const double begin = thread_cpu_seconds();
  try {
    const Executed done = execute(run);
    const std::lock_guard lock(mutex_);
    hops_ += done.hops;
    cpu_seconds_ += thread_cpu_seconds() - begin;
    if (done.stopped) return;
    const std::string problem = done.keep();
    if (!problem.empty() && error_.empty()) error_ = problem;
    ++executed_;
  } catch (const std::invalid_argument& error) {
    const std::lock_guard lock(mutex_);
    if (error_.empty()) error_ = name(run) + ": " + error.what();
  }
}

}  // namespace paceline::tools
