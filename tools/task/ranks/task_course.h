// Execution of a list as rank 0 sees it: tasks handed out, records returned, progress. No sockets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/progress.h"
#include "tools/task/ranks/frames.h"
#include "tools/task/ranks/task_handout.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

// The ranks that keep the records of a list.
enum class Keepers : std::uint8_t {
  first_rank,
  every_rank,  // the next list depends on them
};

// How the execution of a list ended.
struct RankRun {
  enum class End : std::uint8_t {
    complete,     // every record is kept, or its task is in `failures`
    interrupted,  // this process was interrupted, or rank 0 has ended the command
    failed,       // `error` says why
  };
  End end = End::complete;
  std::size_t executed = 0;
  std::uint64_t hops = 0;
  double cpu_seconds = 0;
  double wall_seconds = 0;
  std::string error{};
  std::vector<std::string> failures{};  // "scenario 'a' under 'b': tried 3 times; ..."
};

class TaskCourse {
 public:
  // The tasks of `wanted`; the list outlives this.
  TaskCourse(TaskList& tasks, std::span<const std::size_t> wanted, Keepers keepers);

  const TaskList& tasks() const { return tasks_; }
  TaskHandout& handout() { return handout_; }
  bool over() const { return handout_.over(); }

  // Further tasks for a worker with this many threads: enough that no thread waits for the next
  // message, and so few that no worker waits for another at the end.
  std::vector<std::uint64_t> more_for(TaskHandout::Worker worker, unsigned threads, double now);

  // Takes a finished task from a worker; messages name the worker `who`. False: the worker does not
  // have this task. Other errors are in error().
  bool take(TaskHandout::Worker worker, const std::string& who, DoneTask done, double now);
  // Not empty: a world cannot be built or a record cannot be kept; execute nothing more.
  const std::string& error() const { return error_; }

  experiment::ProgressEstimate estimate(double now);
  // All records, if every rank keeps them.
  const std::vector<DoneTask>& records() const { return records_; }
  // Without `end` and `wall_seconds`.
  RankRun result() const;

 private:
  std::string keep(DoneTask& done, double now);

  TaskList& tasks_;
  Keepers keepers_;
  TaskHandout handout_;
  std::vector<std::size_t> places_;  // by task: its place in `wanted`
  experiment::Progress progress_;
  std::vector<DoneTask> records_;
  std::size_t executed_ = 0;
  std::uint64_t hops_ = 0;
  double cpu_seconds_ = 0;
  double seconds_ = 0;
  std::string error_;
};

}  // namespace paceline::tools
