#include "tools/ci/supervised_command.h"

#include <dirent.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <memory>

#include "tools/cli/cli.h"

namespace paceline::tools {

namespace {

using namespace std::chrono_literals;

// A server in the background needs a moment to notice that its client is done.
constexpr auto kLinger = 1s;
// The time between the request to end and the end by force.
constexpr auto kGrace = 5s;
// How often to look for orphans of orphans while all of them end.
constexpr auto kOrphanLook = 50ms;
constexpr auto kLongestWait = 3600s;

// The parent of a process; 0: it is gone.
pid_t parent_of(const char* process) {
  std::ifstream file(std::string("/proc/") + process + "/stat");
  std::string text;
  std::getline(file, text);
  // "pid (name) state ppid": the name may contain anything.
  const auto name_end = text.rfind(')');
  if (name_end == std::string::npos || name_end + 4 >= text.size()) return 0;
  return static_cast<pid_t>(std::strtol(text.c_str() + name_end + 4, nullptr, 10));
}

int shell_code(int status) {
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace

bool end_with_parent(pid_t parent, int number) {
  ::prctl(PR_SET_PDEATHSIG, number);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  return ::getppid() == parent;
}

SupervisedCommand::SupervisedCommand() {
  ::sigemptyset(&waiting_);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGCHLD}) ::sigaddset(&waiting_, number);
  ::sigprocmask(SIG_BLOCK, &waiting_, &before_);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
}

SupervisedCommand::~SupervisedCommand() { ::sigprocmask(SIG_SETMASK, &before_, nullptr); }

void SupervisedCommand::start(std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const pid_t parent = ::getpid();
  command_ = ::fork();
  if (command_ == 0) {
    if (end_with_parent(parent, SIGTERM)) ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  if (command_ < 0) {
    command_ = 0;
    end_.exit_code = 126;
  }
}

std::vector<pid_t> SupervisedCommand::children() const {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir("/proc"), ::closedir);
  if (folder == nullptr) return out;
  while (const dirent* entry = ::readdir(folder.get())) {
    if (entry->d_name[0] < '1' || entry->d_name[0] > '9') continue;
    if (parent_of(entry->d_name) != ::getpid()) continue;
    const auto process = static_cast<pid_t>(std::strtol(entry->d_name, nullptr, 10));
    if (!spared_.contains(process)) out.push_back(process);
  }
  return out;
}

bool SupervisedCommand::needed_is_gone() const {
  siginfo_t info{};
  return needed_ != 0 &&
         ::waitid(P_PID, static_cast<id_t>(needed_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == needed_;
}

void SupervisedCommand::reap() {
  if (command_ != 0 && ending_ == 0 && needed_is_gone()) {
    end_.needed_ended = true;
    terminate(SIGTERM);
  }
  for (const pid_t process : children()) {
    int status = 0;
    if (::waitpid(process, &status, WNOHANG) != process) continue;
    told_.erase(process);
    if (process != command_) continue;
    command_ = 0;
    end_.exit_code = shell_code(status);
    if (ending_ == 0) ask_at_ = Clock::now() + kLinger;
  }
}

void SupervisedCommand::terminate(int number) {
  ending_ = number;
  kill_at_ = Clock::now() + kGrace;
}

void SupervisedCommand::take_signal(const siginfo_t& signal) {
  if (signal.si_signo == SIGCHLD) return;
  if (end_.stopped) {  // asked twice
    kill_at_ = Clock::now();
    return;
  }
  end_.stopped = true;
  terminate(signal.si_signo);
  // A terminal has told the command itself, and a program that is told twice may skip its clean-up.
  if (signal.si_code == SI_KERNEL) {
    for (const pid_t process : children()) told_.insert(process);
  }
}

void SupervisedCommand::act_on_time() {
  const auto now = Clock::now();
  if (timeout_at_ && now >= *timeout_at_ && command_ != 0 && ending_ == 0) {
    end_.timed_out = true;
    terminate(SIGTERM);
  }
  if (ask_at_ && now >= *ask_at_ && ending_ == 0) {
    end_.left = children().size();
    terminate(SIGTERM);
  }
  if (ending_ == 0) return;
  const bool by_force = now >= *kill_at_;
  for (const pid_t process : children()) {
    if (by_force) {
      ::kill(process, SIGKILL);
    } else if (told_.insert(process).second) {
      ::kill(process, ending_);
    }
  }
}

SupervisedCommand::Clock::duration SupervisedCommand::patience() const {
  if (ending_ != 0 || command_ == 0) return kOrphanLook;
  if (!timeout_at_) return kLongestWait;
  return std::clamp<Clock::duration>(*timeout_at_ - Clock::now(), 0s, kLongestWait);
}

CommandEnd SupervisedCommand::run(std::vector<std::string> words,
                                  std::optional<std::chrono::nanoseconds> timeout) {
  start(words);
  if (timeout) timeout_at_ = Clock::now() + *timeout;
  if (command_ == 0) return end_;
  while (true) {
    reap();
    act_on_time();
    if (command_ == 0 && children().empty()) return end_;
    const auto wait = std::chrono::duration_cast<std::chrono::nanoseconds>(patience()).count();
    const timespec longest{wait / 1'000'000'000, wait % 1'000'000'000};
    siginfo_t signal{};
    if (::sigtimedwait(&waiting_, &signal, &longest) > 0) take_signal(signal);
  }
}

}  // namespace paceline::tools
