#include "dataplane/service/memory/program_memory.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>
#include <fstream>

#include "tests/unit/service_memory/program.h"

namespace paceline::service::test {
namespace {

constexpr uid_t kOther = 54'321;

struct Ends {
  Ends() {
    std::array<int, 2> ends{};
    REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
    reading.reset(ends[0]);
    writing.reset(ends[1]);
  }
  attach::Descriptor reading;
  attach::Descriptor writing;
};

bool wait_byte(const Ends& pipe) {
  char byte = 0;
  return ::read(pipe.reading.get(), &byte, 1) == 1;
}
void send_byte(const Ends& pipe) { REQUIRE(::write(pipe.writing.get(), "x", 1) == 1); }

// A child that connects as `user`, says so, and calls exec when it is told to.
struct Child {
  // `shared`: with a child that has its address space, also when it calls exec.
  explicit Child(uid_t user, bool dumpable = true, bool shared = false) {
    connection = connected_child(pid, user, [&] {
      if (shared &&
          ::clone(wait_for_parent, stack.data() + stack.size(), CLONE_VM | SIGCHLD, this) < 0) {
        ::_exit(1);
      }
      // Changing the user made it otherwise, as a set-user-id program is.
      ::prctl(PR_SET_DUMPABLE, dumpable ? 1 : 0);
      if (::write(ready.writing.get(), "x", 1) != 1) ::_exit(1);
      gone.reading.reset();
      if (wait_byte(go)) ::execl("/bin/sleep", "sleep", "100", nullptr);
    });
    gone.writing.reset();
    REQUIRE(wait_byte(ready));
  }
  ~Child() { end(); }
  void call_exec() {
    send_byte(go);
    REQUIRE_FALSE(wait_byte(gone));  // exec closed it
  }
  void end() {
    if (pid <= 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    pid = -1;
  }

  static int wait_for_parent(void* child) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::close(static_cast<Child*>(child)->gone.writing.get());
    for (;;) ::pause();
  }

  alignas(16) std::array<char, 16'384> stack{};
  Ends ready;
  Ends go;
  Ends gone;
  pid_t pid = -1;
  attach::Descriptor connection;
};

}  // namespace

TEST_CASE("an address space that has ended is not taken for its successor", "[memory]") {
  Child child(::geteuid());
  ProgramMemory memory(child.connection.get());
  REQUIRE(memory.error() == 0);
  memory.open();
  REQUIRE(memory.error() == 0);
  CHECK(memory.reachable(false) == CopyResult::done);
  std::array<std::byte, 8> bytes{};
  CHECK(memory.read({reinterpret_cast<std::uint64_t>(&bytes), bytes.data(), bytes.size()}) ==
        CopyResult::done);
  child.call_exec();
  CHECK(memory.error() == ESRCH);  // though no copy has found out
  CHECK(memory.reachable(false) == CopyResult::gone);
  // A program that called exec between connecting and being let in is pinned as what it is now.
  ProgramMemory late(child.connection.get());
  CHECK(late.error() == 0);
  child.end();
  CHECK(memory.reachable(false) == CopyResult::gone);
  CHECK(late.error() == ESRCH);
  CHECK(ProgramMemory(child.connection.get()).error() == ESRCH);
}

TEST_CASE("what was pinned before an exec is not opened after it", "[memory]") {
  Child child(::geteuid());
  ProgramMemory memory(child.connection.get());
  REQUIRE(memory.error() == 0);
  child.call_exec();
  memory.open();
  CHECK(memory.error() == ESRCH);
  CHECK(memory.reachable(false) == CopyResult::gone);
}

TEST_CASE("an exec is seen though another process keeps the address space", "[memory]") {
  Child child(::geteuid(), true, true);
  ProgramMemory memory(child.connection.get());
  memory.open();
  REQUIRE(memory.error() == 0);
  CHECK(memory.reachable(true) == CopyResult::done);
  child.call_exec();
  CHECK(memory.reachable(false) == CopyResult::done);
  CHECK(memory.reachable(true) == CopyResult::gone);
  CHECK(memory.reachable(false) == CopyResult::gone);
}

TEST_CASE("a number that was given to another process is not followed", "[memory][may_skip]") {
  if (::access("/proc/sys/kernel/ns_last_pid", W_OK) != 0) {
    WARN("skipped: root only");
    return;
  }
  Child child(::geteuid());
  ProgramMemory memory(child.connection.get());
  memory.open();
  REQUIRE(memory.error() == 0);
  const pid_t number = child.pid;
  child.end();
  // Others may be quicker: then again.
  pid_t other = -1;
  for (int i = 0; i < 100 && other != number; ++i) {
    if (other > 0) {
      ::kill(other, SIGKILL);
      ::waitpid(other, nullptr, 0);
    }
    std::ofstream("/proc/sys/kernel/ns_last_pid") << number - 1;
    other = ::fork();
    if (other == 0) {
      for (;;) ::pause();
    }
  }
  if (other == number) {
    CHECK(memory.error() == ESRCH);
    CHECK(memory.reachable(false) == CopyResult::gone);
    CHECK(ProgramMemory(child.connection.get()).error() == ESRCH);
  } else {
    WARN("the number was taken by others each time");
  }
  ::kill(other, SIGKILL);
  ::waitpid(other, nullptr, 0);
}

TEST_CASE("a program that its user may not trace is not reached", "[memory][may_skip]") {
  if (::geteuid() != 0) {
    WARN("skipped: root only");
    return;
  }
  Child closed(kOther, false);
  CHECK(ProgramMemory(closed.connection.get()).error() == EPERM);
  Child open(kOther);
  ProgramMemory memory(open.connection.get());
  CHECK(memory.error() == 0);
  CHECK(memory.credentials().user == kOther);
  CHECK(memory.credentials().capabilities == 0);
}

namespace {

struct Seen {
  std::array<uid_t, 3> users{};
  CapabilitySets sets{};
  CopyResult own = CopyResult::done;
  CopyResult roots = CopyResult::done;
  std::uint64_t address = 0;
  const ProgramMemory* root = nullptr;
  pid_t process = 0;
};

void look(void* at) {
  auto& seen = *static_cast<Seen*>(at);
  ::getresuid(&seen.users[0], &seen.users[1], &seen.users[2]);
  seen.sets = capability_sets();
  seen.process = ::getpid();
  std::array<std::byte, 8> bytes{};
  seen.roots = seen.root->read({seen.address, bytes.data(), bytes.size()});
}

}  // namespace

TEST_CASE("work with a tenant's credentials has its rights and no others", "[memory][may_skip]") {
  if (::geteuid() != 0) {
    WARN("skipped: root only");
    return;
  }
  Child root(0);
  ProgramMemory memory(root.connection.get());
  REQUIRE(memory.error() == 0);
  Seen seen;
  seen.root = &memory;
  seen.address = reinterpret_cast<std::uint64_t>(&seen);
  TenantProcess process;
  REQUIRE(run_as({kOther, kOther, {kOther}, 0}, look, &seen, process));
  CHECK(seen.users == std::array<uid_t, 3>{kOther, kOther, 0});
  CHECK(seen.sets.permitted == 0);
  CHECK(seen.sets.effective == 0);
  CHECK(seen.process != ::getpid());
  CHECK(seen.roots == CopyResult::refused);
  CHECK(::getuid() == 0);
  // A root program's are its own, as far as they are ours.
  const CapabilitySets ours = capability_sets();
  CHECK(memory.credentials().capabilities == ours.permitted);
}

TEST_CASE("the program's page protection is honoured", "[memory]") {
  const Program program(
      3, [](std::size_t) { return false; },
      [](std::byte* memory) { ::mprotect(memory + kPage, kPage, PROT_READ); });
  const auto pinned = program.pinned();
  const ProgramMemory& memory = *pinned;
  REQUIRE(memory.error() == 0);
  std::vector<std::byte> bytes(3 * kPage);
  const auto at = [&](std::size_t page, std::size_t pages) {
    return ProgramPiece{program.address() + page * kPage, bytes.data(), pages * kPage};
  };
  CHECK(memory.read(at(0, 3)) == CopyResult::done);
  CHECK(memory.write(at(0, 1)) == CopyResult::done);
  CHECK(memory.write(at(1, 1)) == CopyResult::fault);
  CHECK(memory.write(at(0, 2)) == CopyResult::fault);
  const std::array<ProgramPiece, 2> good{at(0, 1), at(2, 1)};
  const std::array<ProgramPiece, 2> half{at(0, 1), at(1, 1)};
  CHECK(memory.write_all(good));
  CHECK_FALSE(memory.write_all(half));
  CHECK(memory.read_all(half));
}

}  // namespace paceline::service::test
