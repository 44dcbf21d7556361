// Executes tasks on threads of this process. Every record goes through the list's keep(), as do
// records from other machines, so that results do not depend on the number of threads.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "tools/cli/cli.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

// "12 runs, 3.4 M packet-hops in ..."
std::string speed_text(std::size_t runs, std::uint64_t hops, double cpu_seconds,
                       double wall_seconds);

class TaskThreads {
 public:
  // Executes the tasks of `wanted`, in that order. Ends early if a task cannot be built or its
  // record cannot be kept, or when `stop` becomes true.
  void run(TaskList& tasks, std::span<const std::size_t> wanted, unsigned jobs,
           const std::atomic<bool>& stop, ProgressLine& line);

  std::size_t executed() const { return executed_; }
  std::string speed() const { return speed_text(executed_, hops_, cpu_seconds_, wall_seconds_); }
  const std::string& error() const { return error_; }

 private:
  void execute_one(TaskList& tasks, std::size_t task, const std::atomic<bool>& stop);

  std::mutex mutex_;
  std::condition_variable ended_;
  std::size_t next_ = 0;
  unsigned alive_ = 0;
  std::size_t executed_ = 0;
  std::uint64_t hops_ = 0;
  double cpu_seconds_ = 0;
  double wall_seconds_ = 0;
  std::string error_;
};

}  // namespace paceline::tools
