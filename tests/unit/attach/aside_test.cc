// Where no more threads can be had: RLIMIT_NPROC, or a control group's limit of processes.
#include "dataplane/attach/descriptors/aside.h"

#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <catch2/catch.hpp>
#include <system_error>

namespace paceline::attach {
namespace {

constexpr uid_t kNobodys = 54'323;
constexpr int kGood = 0, kThreadsCanBeHad = 2, kNotDone = 3, kSignalsBlocked = 4;

bool no_thread_can_be_had() {
  try {
    quiet_thread([] {}).join();
  } catch (const std::system_error&) {
    return true;
  }
  return false;
}

// In a process of its own, which the limit is for.
int child() {
  if (::geteuid() == 0 && ::setresuid(kNobodys, kNobodys, kNobodys) != 0) return kThreadsCanBeHad;
  Aside aside;
  aside.begin();
  const rlimit one{1, 1};
  if (::setrlimit(RLIMIT_NPROC, &one) != 0 || !no_thread_can_be_had()) return kThreadsCanBeHad;
  sigset_t blocked;
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  if (sigismember(&blocked, SIGTERM) != 0) return kSignalsBlocked;
  std::atomic<int> done{0};
  for (int i = 0; i < 3; ++i) aside.run([&] { ++done; });
  for (int i = 0; i < 30'000 && done != 3; ++i) ::usleep(1000);
  return done == 3 ? kGood : kNotDone;
}

TEST_CASE("work is done while no more threads can be had", "[aside]") {
  const pid_t process = ::fork();
  REQUIRE(process >= 0);
  if (process == 0) ::_exit(child());
  int status = 0;
  REQUIRE(::waitpid(process, &status, 0) == process);
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == kThreadsCanBeHad) {
    WARN("skipped: this user's limit of processes is not kept here");
    return;
  }
  CHECK(WEXITSTATUS(status) == kGood);
}

}  // namespace
}  // namespace paceline::attach
