// Every rank except rank 0: asks for tasks, executes them on its threads, returns the records. It
// has one connection, to the end of the command.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tools/task/ranks/executing_threads.h"
#include "tools/task/ranks/frames.h"
#include "tools/task/ranks/meeting_point.h"
#include "tools/task/ranks/rank_socket.h"
#include "tools/task/ranks/task_course.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

class TaskWorker {
 public:
  TaskWorker(MeetingPoint where, std::uint32_t rank);

  // Tries the addresses of rank 0 in turn. Returns an error if none answers.
  std::string connect();
  // Waits until rank 0 hands out its first list, that is, has read its files without finding an
  // error. False: it has ended, or this process was interrupted.
  bool wait_for_first(unsigned threads);
  // Works until the list is complete at rank 0. `threads` as in wait_for_first().
  RankRun run(TaskList& tasks, unsigned threads, Keepers keepers);
  // Waits until rank 0 ends the command; closes the connection. False: a rank was lost before.
  bool wait_for_stop();

 private:
  enum class Heard : std::uint8_t { nothing, finish, stop };

  bool hear_welcome(const Frame& frame, unsigned threads);
  Heard hear(TaskList& tasks, ExecutingThreads& executing, Keepers keepers, RankRun& out);
  Heard hear_frame(const Frame& frame, TaskList& tasks, ExecutingThreads& executing,
                   Keepers keepers, RankRun& out);
  void send(const std::string& frames);
  void wait(int other) const;

  MeetingPoint where_;
  std::uint32_t rank_;
  std::unique_ptr<RankSocket> socket_;
  SocketCost cost_;
  std::string nonce_;  // of this rank
  std::string proof_;  // expected from rank 0
  std::uint32_t list_ = 0;
};

}  // namespace paceline::tools
