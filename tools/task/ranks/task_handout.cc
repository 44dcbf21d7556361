#include "tools/task/ranks/task_handout.h"

#include <algorithm>

#include <fmt/format.h>

namespace paceline::tools {

TaskHandout::TaskHandout(std::size_t tasks) : tasks_(tasks), untouched_(tasks) {}

void TaskHandout::skip(std::size_t task) {
  if (tasks_[task].state == State::over) return;
  tasks_[task].state = State::over;
  --untouched_;
  ++done_;
}

TaskHandout::Worker TaskHandout::add(unsigned threads, bool precious) {
  const Worker worker = next_worker_++;
  Member& member = members_[worker];
  member.threads = std::max(1U, threads);
  member.precious = precious;
  threads_ += member.threads;
  return worker;
}

void TaskHandout::lose(Worker worker, const std::string& reason) {
  const auto found = members_.find(worker);
  if (found == members_.end()) return;
  const Member member = std::move(found->second);
  members_.erase(found);
  threads_ -= member.threads;
  // The first ones were being executed; the others waited behind them and are not to blame. They
  // return to the front in their order.
  for (std::size_t i = member.held.size(); i-- > 0;) {
    const std::size_t task = member.held[i].task;
    for (Worker& holder : tasks_[task].holder) {
      if (holder == worker) holder = kNobody;
    }
    if (tasks_[task].state == State::out) give_back(task, i < member.threads, reason);
  }
}

std::optional<std::size_t> TaskHandout::next(Worker worker, double now) {
  Member& member = members_.at(worker);
  if (!member.precious) heard_ = now;
  std::optional<std::size_t> task = first_waiting(member, now);
  if (!task) task = first_late(worker, member, now);
  if (!task) return {};
  Task& given = tasks_[*task];
  given.state = State::out;
  (given.holder[0] == kNobody ? given.holder[0] : given.holder[1]) = worker;
  member.held.push_back({*task, now});
  return task;
}

TaskHandout::Verdict TaskHandout::take(Worker worker, std::size_t task, double now) {
  if (task >= tasks_.size()) return Verdict::foreign;
  Member& member = members_.at(worker);
  if (!member.precious) heard_ = now;
  const auto held = release(member, worker, task);
  if (!held) return Verdict::foreign;
  if (tasks_[task].state == State::over) return Verdict::again;
  longest_ = std::max(longest_, now - held->since);
  tasks_[task].state = State::over;
  ++done_;
  return Verdict::first;
}

bool TaskHandout::broken(Worker worker, std::size_t task, const std::string& reason) {
  if (task >= tasks_.size() || !release(members_.at(worker), worker, task)) return false;
  if (tasks_[task].state == State::out) give_back(task, true, reason);
  return true;
}

std::size_t TaskHandout::held(Worker worker) const { return members_.at(worker).held.size(); }

bool TaskHandout::may_have(const Member& member, std::size_t task, double now) const {
  return tasks_[task].lost == 0 || !member.precious || members_.size() == 1 ||
         heard_ <= late_before(now);
}

double TaskHandout::late_before(double now) const {
  return now - std::max(kLeastOutSeconds, kCopyAfter * longest_);
}

std::optional<std::size_t> TaskHandout::first_waiting(const Member& member, double now) {
  for (auto at = lost_.begin(); at != lost_.end(); ++at) {
    if (!may_have(member, *at, now)) continue;
    const std::size_t task = *at;
    lost_.erase(at);
    return task;
  }
  if (untouched_ == 0) return {};
  while (tasks_[begin_].state != State::waiting) ++begin_;
  --untouched_;
  return begin_++;
}

std::optional<std::size_t> TaskHandout::first_late(Worker worker, const Member& member,
                                                   double now) const {
  if (waiting() != 0 || !member.held.empty()) return {};
  const double late = late_before(now);
  std::optional<Held> found;
  for (const auto& [other, theirs] : members_) {
    if (other == worker) continue;
    for (const Held& held : theirs.held) {
      const Task& task = tasks_[held.task];
      const bool one_copy = task.holder[0] == kNobody || task.holder[1] == kNobody;
      if (task.state != State::out || !one_copy || !may_have(member, held.task, now)) continue;
      if (held.since <= late && (!found || held.since < found->since)) found = held;
    }
  }
  if (!found) return {};
  return found->task;
}

std::optional<TaskHandout::Held> TaskHandout::release(Member& member, Worker worker,
                                                      std::size_t task) {
  const auto at = std::find_if(member.held.begin(), member.held.end(),
                               [&](const Held& held) { return held.task == task; });
  if (at == member.held.end()) return {};
  const Held held = *at;
  member.held.erase(at);
  for (Worker& holder : tasks_[task].holder) {
    if (holder == worker) holder = kNobody;
  }
  return held;
}

void TaskHandout::give_back(std::size_t task, bool tried, const std::string& reason) {
  Task& back = tasks_[task];
  if (tried && ++back.lost == kMostTries) {
    back.state = State::over;
    failures_.push_back({task, fmt::format("tried {} times; the last: {}", kMostTries, reason)});
    return;
  }
  if (back.holder[0] != kNobody || back.holder[1] != kNobody) return;  // a copy is being executed
  back.state = State::waiting;
  lost_.push_front(task);
}

}  // namespace paceline::tools
