// Assigns the tasks of a list to workers, and again if a worker's process ends. Has state only: no
// socket, no thread, no clock. Times are seconds of any monotonic clock.
//
// A task is given to one worker, which returns a record. If the worker is lost first, the task is
// given to another one. If the worker was executing the task, that costs a try; after kMostTries
// the task has failed, because the task itself may end the process. Once no task waits, an idle
// worker gets a copy of a task that takes much longer than any other took: the worker that has it
// may be stopped. The first record counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace paceline::tools {

class TaskHandout {
 public:
  using Worker = std::uint32_t;
  static constexpr unsigned kMostTries = 3;
  // A task is copied after this many times the longest time that one took, at least after
  // kLeastOutSeconds.
  static constexpr double kCopyAfter = 2;
  static constexpr double kLeastOutSeconds = 1;

  struct Failure {
    std::size_t task = 0;
    std::string reason;
  };
  enum class Verdict : std::uint8_t {
    first,    // the record counts
    again,    // another worker was faster, or the task has failed; nothing is wrong
    foreign,  // this worker does not have the task
  };

  explicit TaskHandout(std::size_t tasks);

  // The task has a record already. Call it before the first next().
  void skip(std::size_t task);

  // `threads`: tasks that it executes at a time, at least 1. `precious`: gets no task that has cost
  // a try while another worker is active; for the process that gathers the records.
  Worker add(unsigned threads, bool precious);
  // The worker is lost. `reason` explains a failure: "rank 3 on node7 has ended".
  void lose(Worker worker, const std::string& reason);

  // The next task for this worker, after those that it has. None: nothing for now.
  std::optional<std::size_t> next(Worker worker, double now);
  // A record has arrived.
  Verdict take(Worker worker, std::size_t task, double now);
  // The worker lives, but could not execute the task; costs a try. False: it has no such task.
  bool broken(Worker worker, std::size_t task, const std::string& reason);

  // Tasks that this worker has.
  std::size_t held(Worker worker) const;
  std::size_t waiting() const { return lost_.size() + untouched_; }
  std::size_t done() const { return done_; }
  unsigned threads() const { return threads_; }
  bool over() const { return done_ + failures_.size() == tasks_.size(); }
  const std::vector<Failure>& failures() const { return failures_; }

 private:
  static constexpr Worker kNobody = ~Worker{0};
  enum class State : std::uint8_t { waiting, out, over };
  struct Task {
    Worker holder[2] = {kNobody, kNobody};
    State state = State::waiting;
    std::uint8_t lost = 0;  // tries that it has cost
  };
  struct Held {
    std::size_t task = 0;
    double since = 0;
  };
  struct Member {
    unsigned threads = 1;
    bool precious = false;
    std::deque<Held> held;  // in the order in which it executes them
  };

  bool may_have(const Member& member, std::size_t task, double now) const;
  double late_before(double now) const;
  std::optional<std::size_t> first_waiting(const Member& member, double now);
  std::optional<std::size_t> first_late(Worker worker, const Member& member, double now) const;
  std::optional<Held> release(Member& member, Worker worker, std::size_t task);
  void give_back(std::size_t task, bool tried, const std::string& reason);

  std::vector<Task> tasks_;
  std::map<Worker, Member> members_;
  std::deque<std::size_t> lost_;  // waiting tasks that a worker had before
  std::size_t begin_ = 0;         // first task that no worker had
  std::size_t untouched_;         // tasks that no worker had
  std::size_t done_ = 0;
  Worker next_worker_ = 0;
  unsigned threads_ = 0;
  double longest_ = 0;  // from next() to take()
  double heard_ = 0;    // when a worker that is not precious last called
  std::vector<Failure> failures_;
};

}  // namespace paceline::tools
