#include "tools/task/ranks/rank_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include <fmt/format.h>

#include "tools/cli/cli.h"
#include "tools/task/ranks/mpi/mpi_start.h"

namespace paceline::tools {

namespace {

constexpr unsigned kLeaveSeconds = 60;  // where a rank may be missing
constexpr int kSignalBase = 128;        // of exit codes, as a shell has them
// After SIGTERM, Open MPI's mpirun sleeps before it kills, but only until the first process has
// ended. To give rank 0 that time for writing finished tasks, the other ranks stay longer.
constexpr unsigned kLingerSeconds = 3;

volatile std::sig_atomic_t child_process = 0;
volatile std::sig_atomic_t leaving_code = 0;
volatile std::sig_atomic_t handed_on = 0;

extern "C" void hand_on_signal(int number) {
  handed_on = 1;
  ::kill(child_process, number);
}
extern "C" void end_leaving(int) { ::_exit(leaving_code); }

int exit_code_of(pid_t child, std::uint32_t rank) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  return rank == 0 ? kSignalBase + WTERMSIG(status) : kExitGood;
}

[[noreturn]] void keep_place(pid_t child, int from_child, MpiStart& mpi, std::uint32_t rank) {
  child_process = child;
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) {
    std::signal(number, hand_on_signal);
  }
  const int code = exit_code_of(child, rank);
  for (const int number : {SIGINT, SIGTERM}) std::signal(number, SIG_DFL);
  if (handed_on != 0 && rank != 0) ::sleep(kLingerSeconds);
  char whole = 0;
  const bool all = ::read(from_child, &whole, 1) == 1;
  leaving_code = code;
  std::signal(SIGALRM, end_leaving);
  mpi.leave(all ? 0 : kLeaveSeconds);
  ::_exit(code);
}

}  // namespace

RankProcess::RankProcess(MpiStart& mpi, std::uint32_t rank, const std::function<void()>& let_go) {
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    throw std::runtime_error(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  attach::Descriptor from_child(ends[0]);
  to_parent_.reset(ends[1]);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw std::runtime_error(fmt::format("no process: {}", std::strerror(errno)));
  if (child > 0) {
    to_parent_.reset();
    let_go();
    keep_place(child, from_child.get(), mpi, rank);
  }
  // Signals come by way of the parent alone, and not twice.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(kExitFailed);
}

void RankProcess::set_whole() {
  [[maybe_unused]] const ssize_t told = ::write(to_parent_.get(), "w", 1);
}

}  // namespace paceline::tools
