#include "tools/task/ranks/task_server.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/experiment/progress.h"
#include "dataplane/base/text/printable.h"
#include "tools/task/input_keys.h"

namespace paceline::tools {

namespace {

constexpr int kTickMilliseconds = 100;
constexpr double kShowEverySeconds = 0.25;
constexpr double kFarewellSeconds = 1;
constexpr unsigned kMostThreads = 1024;

}  // namespace

TaskServer::TaskServer(std::string token, std::uint32_t ranks)
    : peers_(std::move(token), ranks), ranks_(ranks), program_(program_key()) {}

TaskServer::~TaskServer() { stop(); }

bool TaskServer::stop() {
  const bool whole = peers_.count() + 1 == ranks_;
  peers_.stop_all(whole, kFarewellSeconds);
  return whole;
}

RankRun TaskServer::run(TaskList& tasks, std::span<const std::size_t> wanted, unsigned threads,
                        Keepers keepers, double patience, bool quiet) {
  const double cpu = thread_cpu_seconds();
  const double begin = wall_seconds();
  quiet_ = quiet;
  TaskCourse course(tasks, wanted, keepers);
  Current current{course, tasks.key(), ProgressLine(quiet)};
  {
    ExecutingThreads executing(tasks, threads);
    if (list_ == 0) wait_for_ranks(current, patience, executing.descriptor());
    if (current.error.empty()) {
      current.begun = true;
      execute(current, course.handout().add(threads, true), threads, executing);
    }
    peers_.forget_other();
  }
  current.line.clear();
  RankRun out = course.result();
  if (!current.error.empty()) out.error = current.error;
  if (!out.error.empty()) {
    out.end = RankRun::End::failed;
  } else if (!course.over()) {
    out.end = RankRun::End::interrupted;
  }
  if (out.end != RankRun::End::complete || !out.failures.empty()) {
    peers_.stop_all(false, kFarewellSeconds);
  } else {
    std::string end = to_frames({list_, course.records()});
    end += to_frame(Finish{list_});
    for (std::uint32_t rank = 1; rank < ranks_; ++rank) {
      if (peers_.has(rank)) peers_.send(rank, end);
    }
  }
  ++list_;
  out.wall_seconds = wall_seconds() - begin;
  cpu_seconds_ += thread_cpu_seconds() - cpu;
  return out;
}

void TaskServer::wait_for_ranks(Current& current, double patience, int descriptor) {
  const double until = wall_seconds() + patience;
  double now = wall_seconds();
  const auto all_here = [&] { return current.workers.size() + gone_.size() + 1 >= ranks_; };
  while (!all_here() && now < until && current.error.empty() && !Interrupt::flag().load()) {
    for (const PeerEvent& event : peers_.wait(kTickMilliseconds, descriptor, now)) {
      hear(current, event);
    }
    now = wall_seconds();
  }
  if (all_here() || !current.error.empty() || Interrupt::flag().load()) return;
  std::vector<std::uint32_t> missing;
  for (std::uint32_t rank = 1; rank < ranks_; ++rank) {
    if (!current.workers.contains(rank) && !gone_.contains(rank)) missing.push_back(rank);
  }
  note(current, fmt::format("ranks that are not ready after {}: {}; the others begin",
                            experiment::format_duration(patience), fmt::join(missing, ", ")));
}

void TaskServer::execute(Current& current, TaskHandout::Worker own, unsigned threads,
                         ExecutingThreads& executing) {
  TaskCourse& course = current.course;
  double now = wall_seconds();
  double all_served = 0;
  std::set<std::uint32_t> heard;
  while (!course.over() && current.error.empty() && course.error().empty() &&
         !Interrupt::flag().load()) {
    const auto mine = course.more_for(own, threads, now);
    if (!mine.empty()) executing.add(mine);
    // Serves workers that sent something; at times all, for tasks that were lost or are late.
    const bool all = now - all_served >= kTickMilliseconds / 1e3;
    if (all) all_served = now;
    for (const auto& [rank, worker] : current.workers) {
      if (!all && !heard.contains(rank)) continue;
      const auto more = course.more_for(worker, threads_of(rank), now);
      if (!more.empty()) peers_.send(rank, to_frame(TaskNumbers{list_, more}));
    }
    heard.clear();
    const auto events = peers_.wait(kTickMilliseconds, executing.descriptor(), now);
    now = wall_seconds();
    for (const PeerEvent& event : events) {
      heard.insert(event.rank);
      hear(current, event);
    }
    for (DoneTask& done : executing.take()) course.take(own, "rank 0", std::move(done), now);
    if (now - shown_ >= kShowEverySeconds) show(current, now);
  }
}

void TaskServer::hear(Current& current, const PeerEvent& event) {
  switch (event.kind) {
    case PeerEvent::Kind::came:
      since_[event.rank] = list_;
      gone_.erase(event.rank);
      return;
    case PeerEvent::Kind::stranger:
      note(current, fmt::format("dropped a connection: {}", event.text));
      return;
    case PeerEvent::Kind::gone: {
      const auto worker = current.workers.find(event.rank);
      gone_.insert(event.rank);
      note(current, event.text + (worker != current.workers.end()
                                      ? "; what it had to do is done elsewhere"
                                      : " before it was ready; the others do the work"));
      if (worker == current.workers.end()) return;
      current.course.handout().lose(worker->second, event.text);
      current.workers.erase(worker);
      return;
    }
    case PeerEvent::Kind::frame:
      // It may have been dropped for an earlier frame.
      if (!peers_.has(event.rank)) return;
      if (event.frame == FrameKind::ready) return hear_ready(current, event.rank, event);
      if (event.frame == FrameKind::records) return hear_records(current, event.rank, event);
      return drop(current, event.rank, "sent what only rank 0 sends");
  }
}

void TaskServer::hear_ready(Current& current, std::uint32_t rank, const PeerEvent& event) {
  const auto ready = to_ready(event.text);
  if (!ready || ready->list > list_ || current.workers.contains(rank)) {
    return drop(current, rank, "sent a broken frame");
  }
  if (ready->list < since_[rank]) {
    return drop(current, rank, "came too late: the work has gone on without it");
  }
  if (ready->list < list_) return;  // it was stopped; it will read that this list is complete
  const std::string other = difference(current, rank, *ready);
  if (other.empty()) {
    current.workers[rank] = current.course.handout().add(threads_of(rank), false);
    return;
  }
  // Before the first run nothing is lost by starting again, with equal files.
  if (!current.begun && current.error.empty()) {
    current.error = fmt::format("{} {}", peers_.name(rank), other);
  }
  drop(current, rank, other);
}

void TaskServer::hear_records(Current& current, std::uint32_t rank, const PeerEvent& event) {
  auto done = to_done_tasks(event.text);
  if (!done || done->list > list_) return drop(current, rank, "sent a broken frame");
  if (done->list < list_) return;  // of a list that is complete
  const auto worker = current.workers.find(rank);
  if (worker == current.workers.end()) {
    return drop(current, rank, "sent a record before it was ready");
  }
  const std::string who = peers_.name(rank);
  const double now = wall_seconds();
  for (DoneTask& task : done->tasks) {
    const std::uint64_t number = task.task;
    if (current.course.take(worker->second, who, std::move(task), now)) continue;
    return drop(current, rank,
                fmt::format("sent a record of task {}, which it was not given", number));
  }
}

std::string TaskServer::difference(const Current& current, std::uint32_t rank,
                                   const Ready& ready) const {
  const TaskList& tasks = current.course.tasks();
  const Hello& hello = peers_.hello(rank);
  if (hello.program != program_) {
    return fmt::format("runs another build of paceline ({}) than rank 0 ({})",
                       printable(hello.version), PACELINE_VERSION);
  }
  if (ready.size != tasks.size()) {
    return fmt::format("has {} runs to do and rank 0 has {}: its files or options are others",
                       ready.size, tasks.size());
  }
  if (ready.key == current.key) return {};
  for (std::size_t task = 0; task < std::min(ready.task_keys.size(), tasks.size()); ++task) {
    if (ready.task_keys[task] == tasks.task_key(task)) continue;
    return fmt::format("has other files, plug-ins or options than rank 0 for {}", tasks.name(task));
  }
  return "has other files, plug-ins or options than rank 0";
}

void TaskServer::drop(Current& current, std::uint32_t rank, const std::string& reason) {
  const std::string text = fmt::format("{} {}", peers_.name(rank), reason);
  peers_.drop(rank);
  gone_.insert(rank);
  if (const auto worker = current.workers.find(rank); worker != current.workers.end()) {
    current.course.handout().lose(worker->second, text);
    current.workers.erase(worker);
  }
  if (!current.error.empty()) return;
  current.line.clear();
  fmt::print(stderr, "paceline: error: {}; the others do its work\n", printable(text));
}

unsigned TaskServer::threads_of(std::uint32_t rank) const {
  return std::clamp(peers_.hello(rank).threads, 1U, kMostThreads);
}

void TaskServer::show(Current& current, double now) {
  shown_ = now;
  if (quiet_) return;
  const experiment::ProgressEstimate estimate = current.course.estimate(now);
  current.line.show(
      estimate.fraction, estimate.seconds_left,
      fmt::format("{} of {} runs, {} ranks, {} threads", estimate.done, estimate.total,
                  current.workers.size() + 1, current.course.handout().threads()));
}

void TaskServer::note(Current& current, const std::string& text) {
  if (quiet_) return;
  current.line.clear();
  fmt::print(stderr, "paceline: {}\n", printable(text));
}

}  // namespace paceline::tools
