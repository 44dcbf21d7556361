// Runs a command and waits until none of the processes that it started is left: a remaining process
// would hold the pipes of a CI job open, and so hold up the job.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <csignal>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace paceline::tools {

struct CommandEnd {
  int exit_code = 0;  // as in a shell: 128 + N after signal N
  bool timed_out = false;
  bool stopped = false;       // this process was told to end
  bool needed_ended = false;  // the process of end_with() ended before the command
  std::size_t left = 0;       // processes that the command left behind, and that were ended
};

class SupervisedCommand {
 public:
  // From here on SIGINT, SIGTERM and SIGHUP wait for run(), and orphans come to this process.
  SupervisedCommand();
  ~SupervisedCommand();
  SupervisedCommand(const SupervisedCommand&) = delete;
  SupervisedCommand& operator=(const SupervisedCommand&) = delete;

  // `process`: a child of this process that does not belong to the command.
  void spare(pid_t process) { spared_.insert(process); }
  // Ends the command when `process`, a child of this process, has ended. The caller still has to
  // wait for that child.
  void end_with(pid_t process) {
    spare(process);
    needed_ = process;
  }

  CommandEnd run(std::vector<std::string> words, std::optional<std::chrono::nanoseconds> timeout);

 private:
  using Clock = std::chrono::steady_clock;

  void start(std::vector<std::string>& words);
  void reap();
  bool needed_is_gone() const;
  void take_signal(const siginfo_t& signal);
  void act_on_time();
  void terminate(int number);
  std::vector<pid_t> children() const;
  Clock::duration patience() const;

  sigset_t waiting_{};
  sigset_t before_{};
  std::set<pid_t> spared_;
  pid_t needed_ = 0;
  std::set<pid_t> told_;  // processes that were asked to end
  pid_t command_ = 0;     // 0: has ended
  int ending_ = 0;        // the signal that asks processes to end; 0: none yet
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> ask_at_;  // when the processes left are asked to end
  std::optional<Clock::time_point> kill_at_;
  CommandEnd end_;
};

// Call it in a child before exec: the child gets signal `number` when its parent ends, and blocks
// no signals. False: the parent has ended already.
bool end_with_parent(pid_t parent, int number);

}  // namespace paceline::tools
