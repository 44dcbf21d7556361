#include "dataplane/service/memory/program_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <csignal>

#include "tests/unit/service_memory/program.h"

namespace paceline::service::test {

TEST_CASE("an address space that has ended is not taken for its successor", "[memory]") {
  // Of the child: it calls exec when the first pipe says so, which closes the second one.
  std::array<int, 2> go{};
  std::array<int, 2> gone{};
  REQUIRE(::pipe2(go.data(), O_CLOEXEC) == 0);
  REQUIRE(::pipe2(gone.data(), O_CLOEXEC) == 0);
  const pid_t child = ::fork();
  if (child == 0) {
    char byte = 0;
    if (::read(go[0], &byte, 1) == 1) ::execl("/bin/sleep", "sleep", "100", nullptr);
    ::_exit(1);
  }
  ::close(gone[1]);
  ProgramMemory memory;
  REQUIRE(memory.open(child) == 0);
  CHECK(memory.alive());
  std::array<std::byte, 8> bytes{};
  CHECK(memory.read({reinterpret_cast<std::uint64_t>(&bytes), bytes.data(), bytes.size()}) ==
        CopyResult::done);
  REQUIRE(::write(go[1], "x", 1) == 1);
  char byte = 0;
  REQUIRE(::read(gone[0], &byte, 1) == 0);
  CHECK_FALSE(memory.alive());
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  CHECK_FALSE(memory.alive());
  CHECK(memory.open(child) == ENOENT);
  for (const int fd : {go[0], go[1], gone[0]}) ::close(fd);
}

TEST_CASE("the program's page protection is honoured", "[memory]") {
  const Program program(
      3, [](std::size_t) { return false; },
      [](std::byte* memory) { ::mprotect(memory + kPage, kPage, PROT_READ); });
  ProgramMemory memory;
  REQUIRE(memory.open(program.pid()) == 0);
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
