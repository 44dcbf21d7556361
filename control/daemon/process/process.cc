#include "control/daemon/process/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <string_view>

namespace paceline::daemon {

namespace {

std::vector<char*> pointers_to(const std::vector<std::string>& texts) {
  std::vector<char*> out;
  for (const std::string& text : texts) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

struct SpawnFiles {
  SpawnFiles() { posix_spawn_file_actions_init(&actions); }
  SpawnFiles(const SpawnFiles&) = delete;
  SpawnFiles& operator=(const SpawnFiles&) = delete;
  ~SpawnFiles() { posix_spawn_file_actions_destroy(&actions); }
  posix_spawn_file_actions_t actions{};
};

struct SpawnAttributes {
  SpawnAttributes() { posix_spawnattr_init(&attributes); }
  SpawnAttributes(const SpawnAttributes&) = delete;
  SpawnAttributes& operator=(const SpawnAttributes&) = delete;
  ~SpawnAttributes() { posix_spawnattr_destroy(&attributes); }
  posix_spawnattr_t attributes{};
};

// The C library's own has no C linkage in Debian 12. Such descriptors close on exec.
int open_pidfd(pid_t pid) { return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)); }

}  // namespace

std::string Process::start(const Launch& launch) {
  handle_.reset();
  pid_ = 0;
  child_ = false;
  ending_.clear();
  SpawnFiles files;
  const char* const log = launch.log.empty() ? "/dev/null" : launch.log.c_str();
  posix_spawn_file_actions_addopen(&files.actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&files.actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0640);
  posix_spawn_file_actions_adddup2(&files.actions, 1, 2);
  // A listening socket of the daemon must not live on in a process that outlives the daemon:
  // clients would wait for ever.
  posix_spawn_file_actions_addclosefrom_np(&files.actions, 3);
  SpawnAttributes attributes;
  sigset_t none;
  sigset_t usual;
  sigemptyset(&none);
  sigemptyset(&usual);
  for (const int number : {SIGTERM, SIGINT, SIGHUP, SIGPIPE}) sigaddset(&usual, number);
  posix_spawnattr_setsigmask(&attributes.attributes, &none);
  posix_spawnattr_setsigdefault(&attributes.attributes, &usual);
  posix_spawnattr_setflags(&attributes.attributes,
                           POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  const std::vector<char*> arguments = pointers_to(launch.arguments);
  const std::vector<char*> environment = pointers_to(launch.environment);
  pid_t pid = 0;
  const int error = ::posix_spawnp(&pid, arguments[0], &files.actions, &attributes.attributes,
                                   arguments.data(), environment.data());
  if (error != 0) {
    return fmt::format("cannot start {} (log {}): {}", launch.arguments[0], log,
                       std::strerror(error));
  }
  watch(pid);
  child_ = true;
  return {};
}

void Process::watch(pid_t pid) {
  if (pid == pid_ && handle_) return;
  child_ = false;
  ending_.clear();
  pid_ = pid;
  handle_.reset(pid > 0 ? open_pidfd(pid) : -1);
}

bool Process::alive() {
  if (!handle_) return false;
  pollfd state{handle_.get(), POLLIN, 0};
  if (::poll(&state, 1, 0) == 0) return true;
  if (child_) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      ending_ = WIFSIGNALED(status)
                    ? fmt::format("signal {} ({})", WTERMSIG(status), strsignal(WTERMSIG(status)))
                    : fmt::format("exit status {}", WEXITSTATUS(status));
    }
  }
  handle_.reset();
  return false;
}

bool Process::signal(int number) {
  return handle_ && ::syscall(SYS_pidfd_send_signal, handle_.get(), number, nullptr, 0) == 0;
}

std::vector<std::string> inherited_environment(const std::vector<std::string>& environment) {
  static constexpr std::array<std::string_view, 9> kOurs{
      "NOTIFY_SOCKET=", "LISTEN_FDS=",     "LISTEN_PID=",    "LISTEN_FDNAMES=", "WATCHDOG_USEC=",
      "WATCHDOG_PID=",  "JOURNAL_STREAM=", "INVOCATION_ID=", "MAINPID="};
  std::vector<std::string> out;
  for (const std::string& entry : environment) {
    bool ours = false;
    for (const std::string_view name : kOurs) ours = ours || entry.rfind(name, 0) == 0;
    if (!ours) out.push_back(entry);
  }
  return out;
}

}  // namespace paceline::daemon
