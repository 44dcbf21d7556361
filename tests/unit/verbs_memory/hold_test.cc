#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "dataplane/verbs/memory/page_swap.h"
#include "tests/unit/verbs_memory/hammer.h"
#include "tests/unit/verbs_memory/shared_program.h"

namespace paceline::verbs::test {
namespace {

// Registers and deregisters the pages again and again while they are written to.
Losses register_under(std::byte* memory, std::size_t pages, int rounds) {
  RegistrationMap map(MemoryMode::share);
  map.hold_with({});
  Hammer hammer(memory, pages);
  for (int i = 0; i < rounds; ++i) {
    RegistrationMap::Held held;
    REQUIRE(map.prepare(address_of(memory) + 24, pages * kPage - 24 - 8, held) == 0);
    REQUIRE(bytes_shared(held) == (pages - 2) * kPage);
    hammer.wait_for_a_pass();
    map.release(held);
    hammer.wait_for_a_pass();
  }
  CHECK(map.counters().shares >= static_cast<std::uint64_t>(rounds));
  CHECK(map.counters().returns == map.counters().shares);
  CHECK(map.counters().shared_bytes == 0);
  return hammer.stop();
}

void check_nothing_lost(const Losses& losses) {
  INFO(losses.additions << " additions; lost " << losses.plain << " plain, " << losses.atomic
                        << " atomic; reads: " << losses.wrong_reads << " wrong, "
                        << losses.failed_reads << " failed");
  CHECK(losses.none());
}

}  // namespace

TEST_CASE("nothing is lost when pages are exchanged under writers", "[memory][threads][may_skip]") {
  if (!can_hold_pages()) {
    WARN("skipped: pages of this machine cannot be held");
    return;
  }
  SECTION("mapped memory") {
    const Pages memory(1024);
    check_nothing_lost(register_under(memory.data(), 1024, 6));
  }
  SECTION("few pages, often") {
    const Pages memory(3);
    check_nothing_lost(register_under(memory.data(), 3, 15));
  }
  SECTION("large pages") {
    const Pages memory(2048);
    ::madvise(memory.data(), memory.bytes(), MADV_HUGEPAGE);
    std::memset(memory.data(), 0, memory.bytes());
    check_nothing_lost(register_under(memory.data(), 2048, 3));
  }
  SECTION("the heap") {
    // Grown by brk, where malloc does not reach.
    void* const end = ::sbrk(0);
    const std::uint64_t lead = (kPage - address_of(end) % kPage) % kPage;
    void* const at = ::sbrk(static_cast<intptr_t>(lead + 64 * kPage));
    REQUIRE(at != reinterpret_cast<void*>(-1));
    check_nothing_lost(register_under(static_cast<std::byte*>(at) + lead, 64, 8));
  }
  SECTION("pages shared with a child until they are written") {
    const Pages memory(256);
    std::memset(memory.data(), 0, memory.bytes());
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) ::pause();
    }
    check_nothing_lost(register_under(memory.data(), 256, 6));
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
  }
}

// The same without holding anybody, to show that the test above can fail.
TEST_CASE("without a hold additions are lost", "[memory][threads]") {
  const Pages memory(1024);
  SharedFile file;
  REQUIRE(file.open());
  PageSwap swap(nullptr, file.descriptor());
  std::uint64_t lost = 0;
  for (int i = 0; i < 50 && lost == 0; ++i) {
    std::memset(memory.data(), 0, memory.bytes());
    Hammer hammer(memory.data(), 1024);
    std::uint64_t offset = 0;
    REQUIRE(file.take_slot(address_of(memory.data()), offset));
    REQUIRE(swap.share(address_of(memory.data()), memory.bytes(), offset, PROT_READ | PROT_WRITE) ==
            memory.bytes());
    REQUIRE(swap.take_back(address_of(memory.data()), memory.bytes(), offset,
                           PROT_READ | PROT_WRITE) == memory.bytes());
    const Losses losses = hammer.stop();
    lost = losses.plain + losses.atomic + losses.wrong_reads;
  }
  CHECK(lost != 0);
}

}  // namespace paceline::verbs::test
