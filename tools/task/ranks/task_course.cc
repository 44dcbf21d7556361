#include "tools/task/ranks/task_course.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace paceline::tools {

namespace {

constexpr double kAheadSeconds = 0.02;  // work that a thread should have in front of it
constexpr double kLongTaskSeconds = 1;  // a round trip is nothing beside a task of this length
constexpr std::size_t kMostAhead = 64;  // tasks a thread

std::vector<experiment::WorkUnit> units_of(const TaskList& tasks,
                                           std::span<const std::size_t> wanted) {
  std::vector<experiment::WorkUnit> units;
  units.reserve(wanted.size());
  for (const std::size_t task : wanted) units.push_back(tasks.unit(task));
  return units;
}

}  // namespace

TaskCourse::TaskCourse(TaskList& tasks, std::span<const std::size_t> wanted, Keepers keepers)
    : tasks_(tasks),
      keepers_(keepers),
      handout_(tasks.size()),
      places_(tasks.size(), tasks.size()),
      progress_(units_of(tasks, wanted), 1) {
  for (std::size_t i = 0; i < wanted.size(); ++i) places_[wanted[i]] = i;
  for (std::size_t task = 0; task < tasks.size(); ++task) {
    if (places_[task] == tasks.size()) handout_.skip(task);
  }
}

std::vector<std::uint64_t> TaskCourse::more_for(TaskHandout::Worker worker, unsigned threads,
                                                double now) {
  std::size_t ahead = threads;
  if (executed_ != 0) {
    const double mean = seconds_ / static_cast<double>(executed_);
    const double most = static_cast<double>(kMostAhead * threads);
    ahead = mean >= kLongTaskSeconds
                ? 0
                : static_cast<std::size_t>(
                      std::min(most, std::ceil(threads * kAheadSeconds / std::max(mean, 1e-9))));
  }
  const std::size_t fair = handout_.waiting() * threads / (2 * handout_.threads());
  ahead = std::min(ahead, fair);
  const std::size_t held = handout_.held(worker);
  std::vector<std::uint64_t> out;
  // Many at a time, where they are short.
  if (held >= threads && held + std::max<std::size_t>(1, ahead / 2) > threads + ahead) return out;
  while (held + out.size() < threads + ahead) {
    const auto task = handout_.next(worker, now);
    if (!task) break;
    out.push_back(*task);
  }
  return out;
}

bool TaskCourse::take(TaskHandout::Worker worker, const std::string& who, DoneTask done,
                      double now) {
  const std::size_t task = done.task;
  if (done.end == TaskEnd::broken) {
    return handout_.broken(worker, task, fmt::format("{}: {}", who, done.text));
  }
  switch (handout_.take(worker, task, now)) {
    case TaskHandout::Verdict::foreign:
      return false;
    case TaskHandout::Verdict::again:
      return true;
    case TaskHandout::Verdict::first:
      break;
  }
  const std::string problem = done.end == TaskEnd::refused
                                  ? fmt::format("{}: {}", tasks_.name(task), done.text)
                                  : keep(done, now);
  if (error_.empty()) error_ = problem;
  return true;
}

std::string TaskCourse::keep(DoneTask& done, double now) {
  const std::size_t place = places_[done.task];
  progress_.start(place, now - done.seconds);
  progress_.finish(place, now);
  ++executed_;
  hops_ += done.hops;
  cpu_seconds_ += done.cpu_seconds;
  seconds_ += done.seconds;
  std::string problem = tasks_.keep(done.task, done.text);
  if (keepers_ == Keepers::every_rank) records_.push_back(std::move(done));
  return problem;
}

experiment::ProgressEstimate TaskCourse::estimate(double now) {
  progress_.set_jobs(handout_.threads());
  return progress_.estimate(now);
}

RankRun TaskCourse::result() const {
  RankRun out;
  out.executed = executed_;
  out.hops = hops_;
  out.cpu_seconds = cpu_seconds_;
  out.error = error_;
  for (const TaskHandout::Failure& failure : handout_.failures()) {
    out.failures.push_back(fmt::format("{}: {}", tasks_.name(failure.task), failure.reason));
  }
  return out;
}

}  // namespace paceline::tools
