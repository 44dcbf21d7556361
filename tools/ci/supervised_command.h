// A command with all that it starts, from its start until no process of it is left: what a command
// leaves behind would hold the pipes of a CI job open, and the job with them.
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
  int exit_code = 0;  // as a shell has it: 128 + N after signal N
  bool timed_out = false;
  bool stopped = false;       // this process was told to end
  bool needed_ended = false;  // before the command had: the service
  std::size_t left = 0;       // processes that it had left behind, and that were ended
};

class SupervisedCommand {
 public:
  // From here on SIGINT, SIGTERM and SIGHUP wait for run(), and orphans come to this process.
  SupervisedCommand();
  ~SupervisedCommand();
  SupervisedCommand(const SupervisedCommand&) = delete;
  SupervisedCommand& operator=(const SupervisedCommand&) = delete;

  // A child of this process that is no part of the command.
  void spare(pid_t process) { spared_.insert(process); }
  // The command is ended when this child of this process has ended. Its parent still has to wait
  // for it.
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
  std::set<pid_t> told_;  // have been asked to end
  pid_t command_ = 0;     // 0: has ended
  int ending_ = 0;        // the signal that asks them; 0: nobody is asked
  std::optional<Clock::time_point> timeout_at_;
  std::optional<Clock::time_point> ask_at_;  // those who are left
  std::optional<Clock::time_point> kill_at_;
  CommandEnd end_;
};

// In a child, before it becomes a program: it gets this signal when its parent has ended, and has
// no signals blocked. False: the parent has ended already.
bool end_with_parent(pid_t parent, int number);

}  // namespace paceline::tools
