#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>

#include "dataplane/verbs/memory/fork_guard.h"
#include "tests/unit/verbs_memory/hammer.h"
#include "tests/unit/verbs_memory/shared_program.h"

namespace paceline::verbs::test {
namespace {

struct Guarded {
  explicit Guarded(RegistrationMap& map) { guard_forks(&map); }
  Guarded(const Guarded&) = delete;
  Guarded& operator=(const Guarded&) = delete;
  ~Guarded() { guard_forks(nullptr); }
};

// Memory of ones that is registered and shared, before a fork that is guarded.
struct Shared {
  Shared() {
    map.hold_with({});
    std::memset(memory.data(), 1, memory.bytes());
    REQUIRE(map.prepare(address_of(memory.data()), memory.bytes(), held) == 0);
    REQUIRE(bytes_shared(held) == memory.bytes());
  }
  RegistrationMap map{MemoryMode::automatic};
  Guarded guarded{map};
  Pages memory{16};
  RegistrationMap::Held held;
};

// What the child says: the number of the first check that did not hold, 0 for none.
int in_child(const std::function<int()>& checks) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(checks());
  int status = 0;
  ::waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

bool all(const std::byte* memory, std::size_t bytes, unsigned value) {
  for (std::size_t i = 0; i < bytes; ++i) {
    if (memory[i] != static_cast<std::byte>(value)) return false;
  }
  return true;
}

}  // namespace

TEST_CASE("a child has registered memory of its own", "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  Shared shared;
  RegistrationMap& map = shared.map;
  const Pages& memory = shared.memory;
  CHECK(in_child([&] {
          if (!all(memory.data(), memory.bytes(), 1)) return 1;
          std::memset(memory.data(), 2, memory.bytes());
          if (!all(memory.data(), memory.bytes(), 2)) return 2;
          // It can register again, memory that its parent had registered, too.
          map.release(shared.held);
          if (!all(memory.data(), memory.bytes(), 2)) return 3;
          if (map.descriptor() < 0) return 4;
          map.hold_with({});
          const Pages own(4);
          std::memset(own.data(), 7, own.bytes());
          RegistrationMap::Held fresh;
          if (map.prepare(address_of(own.data()), own.bytes(), fresh) != 0) return 5;
          if (bytes_shared(fresh) != own.bytes() || !all(own.data(), own.bytes(), 7)) return 6;
          map.release(fresh);
          return all(own.data(), own.bytes(), 7) ? 0 : 7;
        }) == 0);
  CHECK(all(memory.data(), memory.bytes(), 1));
  std::memset(memory.data(), 3, memory.bytes());
  map.release(shared.held);
  CHECK(all(memory.data(), memory.bytes(), 3));
}

TEST_CASE("a child keeps what it has not written when its parent deregisters",
          "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  Shared shared;
  RegistrationMap& map = shared.map;
  const Pages& memory = shared.memory;
  int released[2];
  REQUIRE(::pipe(released) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(released[0], &byte, 1) != 1) ::_exit(1);
    ::_exit(all(memory.data(), memory.bytes(), 1) ? 0 : 2);
  }
  map.release(shared.held);
  CHECK(map.counters().kept == 1);
  REQUIRE(::write(released[1], "r", 1) == 1);
  int status = 0;
  ::waitpid(child, &status, 0);
  CHECK(status == 0);
  ::close(released[0]);
  ::close(released[1]);
}

TEST_CASE("without the guard a child writes into its parent", "[memory][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  RegistrationMap map(MemoryMode::automatic);
  map.hold_with({});
  const Pages memory(2);
  RegistrationMap::Held held;
  REQUIRE(map.prepare(address_of(memory.data()), memory.bytes(), held) == 0);
  CHECK(in_child([&] {
          std::memset(memory.data(), 2, memory.bytes());
          return 0;
        }) == 0);
  CHECK(all(memory.data(), memory.bytes(), 2));
  map.release(held);
}

}  // namespace paceline::verbs::test
