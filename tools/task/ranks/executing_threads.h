// Threads that execute tasks of a list in the order in which they were added. The owner, rank 0 or
// another rank, waits for results on a descriptor.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "tools/task/ranks/frames.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

class ExecutingThreads {
 public:
  // The list outlives this. Throws std::runtime_error if no descriptor is free.
  ExecutingThreads(const TaskList& tasks, unsigned threads);
  ~ExecutingThreads();  // stops
  ExecutingThreads(const ExecutingThreads&) = delete;
  ExecutingThreads& operator=(const ExecutingThreads&) = delete;

  void add(std::span<const std::uint64_t> tasks);
  // Tasks that have ended since the last call, without those that were stopped.
  std::vector<DoneTask> take();
  // Readable when take() may return tasks.
  int descriptor() const { return event_.get(); }
  // Stops tasks that are being executed, starts no more, and waits for the threads.
  void stop();

 private:
  void work();
  DoneTask execute(std::uint64_t task) const;

  const TaskList& tasks_;
  attach::Descriptor event_;
  std::atomic<bool> stop_{false};
  std::mutex mutex_;
  std::condition_variable added_;
  std::deque<std::uint64_t> queue_;
  std::vector<DoneTask> done_;
  std::vector<std::thread> threads_;
};

}  // namespace paceline::tools
