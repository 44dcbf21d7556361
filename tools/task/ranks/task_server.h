// Rank 0: hands the tasks of one list after another to the ranks that have made the same list and
// to threads of its own, and keeps the records that come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>

#include "tools/cli/cli.h"
#include "tools/task/ranks/executing_threads.h"
#include "tools/task/ranks/frames.h"
#include "tools/task/ranks/rank_peers.h"
#include "tools/task/ranks/task_course.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

class TaskServer {
 public:
  // `ranks`: including this one. Throws std::runtime_error if it cannot listen.
  TaskServer(std::string token, std::uint32_t ranks);
  ~TaskServer();  // stops
  TaskServer(const TaskServer&) = delete;
  TaskServer& operator=(const TaskServer&) = delete;

  std::uint16_t port() const { return peers_.port(); }

  // The tasks of `wanted`. Before the first list, waits until all ranks have made the same one; for
  // those that have not come, at most `patience` seconds. `quiet`: nothing but errors is printed.
  RankRun run(TaskList& tasks, std::span<const std::size_t> wanted, unsigned threads,
              Keepers keepers, double patience, bool quiet);

  // Ends the command on all ranks. Returns whether all of them were there to be told, after lists
  // that are complete.
  bool stop();

  const SocketCost& cost() const { return peers_.cost(); }
  double cpu_seconds() const { return cpu_seconds_; }  // of the thread that was in run()

 private:
  // The current list.
  struct Current {
    TaskCourse& course;
    std::uint64_t key;
    ProgressLine line;
    bool begun = false;                                      // a task was handed out
    std::map<std::uint32_t, TaskHandout::Worker> workers{};  // by rank
    std::string error{};
  };

  void wait_for_ranks(Current& current, double patience, int descriptor);
  void execute(Current& current, TaskHandout::Worker own, unsigned threads,
               ExecutingThreads& executing);
  void hear(Current& current, const PeerEvent& event);
  void hear_ready(Current& current, std::uint32_t rank, const PeerEvent& event);
  void hear_records(Current& current, std::uint32_t rank, const PeerEvent& event);
  std::string difference(const Current& current, std::uint32_t rank, const Ready& ready) const;
  void drop(Current& current, std::uint32_t rank, const std::string& reason);
  unsigned threads_of(std::uint32_t rank) const;
  void show(Current& current, double now);
  void note(Current& current, const std::string& text);

  RankPeers peers_;
  std::uint32_t ranks_;
  std::uint64_t program_;
  std::uint32_t list_ = 0;  // the number of the current list, or of the next one
  std::map<std::uint32_t, std::uint32_t> since_;  // the current list when a rank came
  std::set<std::uint32_t> gone_;
  bool quiet_ = false;
  double shown_ = 0;
  double cpu_seconds_ = 0;
};

}  // namespace paceline::tools
