#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <numeric>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/service/memory/tenant_memory.h"
#include "tests/unit/service_memory/program.h"

namespace paceline::service::test {
namespace {

using transport::MemoryCaller;
using transport::MemoryResult;

std::unique_ptr<RegionMemory> whole(TenantMemory& tenant, const Program& program) {
  int error = -1;
  auto region =
      tenant.add(program.address(), program.bytes(), program.extents(0, program.bytes()), error);
  REQUIRE(error == 0);
  return region;
}

bool by_copy(std::size_t) { return false; }

// Makes a page of this process one that nobody ever fills. False: not allowed here.
bool make_bottomless(std::byte* page) {
  ::munmap(page, kPage);
  ::mmap(page, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  const int file = static_cast<int>(::syscall(SYS_userfaultfd, O_CLOEXEC));
  uffdio_api api{};
  api.api = UFFD_API;
  uffdio_register watch{};
  watch.range = {reinterpret_cast<std::uintptr_t>(page), kPage};
  watch.mode = UFFDIO_REGISTER_MODE_MISSING;
  return file >= 0 && ::ioctl(file, UFFDIO_API, &api) == 0 &&
         ::ioctl(file, UFFDIO_REGISTER, &watch) == 0;
}

}  // namespace

TEST_CASE("a program whose memory never answers makes nobody wait but itself",
          "[memory][threads][may_skip]") {
  Program hung(3, by_copy, [](std::byte* memory) {
    memory[0] = make_bottomless(memory + kPage) ? std::byte{1} : std::byte{2};
  });
  if (hung.peek(0, 1)[0] != std::byte{1}) {
    WARN("skipped: no userfaultfd here");
    return;
  }
  const Program other(3, by_copy);
  std::atomic<int> wakes{0};
  auto stuck = TenantMemory::make(hung.pinned(), [&wakes] { ++wakes; });
  const auto free = TenantMemory::make(other.pinned(), [] {});
  auto stuck_region = whole(*stuck, hung);
  auto free_region = whole(*free, other);
  std::array<std::byte, 64> bytes{};
  REQUIRE(stuck_region->provider().write(3, kPage, bytes) == MemoryResult::pending);
  // Behind it in the same tenant's queue.
  REQUIRE(stuck_region->provider().read(4, 0, bytes) == MemoryResult::pending);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(read_through(*free, *free_region, 0, bytes) == MemoryResult::done);
  }
  std::array<std::uint32_t, 4> ready{};
  CHECK(stuck->take_ready(ready) == 0);
  CHECK(stuck_region->provider().write(3, kPage, bytes) == MemoryResult::pending);
  // Both come back, though the copy does not.
  stuck->remove(std::move(stuck_region));
  stuck.reset();
  const int before = wakes;
  hung.end();  // ends the copy with its memory
  const timespec pause{0, 50'000'000};
  ::nanosleep(&pause, nullptr);
  CHECK(wakes == before);
  free->remove(std::move(free_region));
}

// What an engine does for a request with several segments: each call in turn, all of them again
// after one of them had to wait.
TEST_CASE("an access to many pieces copies each of them once", "[memory][threads]") {
  const std::uint64_t seed = 5;
  INFO("seed " << seed);
  Random random(seed);
  const Program program(40, by_copy);
  const auto tenant = TenantMemory::make(program.pinned(), [] {});
  auto region = whole(*tenant, program);
  constexpr std::uint32_t kPieces = 16;
  std::uint64_t copies = 0;
  for (int round = 0; round < 20; ++round) {
    const bool responder = round % 2 != 0;
    // Some of them the same place twice, and the same places as in the round before.
    std::array<std::uint64_t, kPieces> places{};
    std::array<std::uint32_t, kPieces> lengths{};
    for (std::uint32_t i = 0; i < kPieces; ++i) {
      places[i] = i % 4 == 3 ? places[i - 1] : i * 2 * kPage;
      lengths[i] = i % 4 == 3 ? lengths[i - 1] : 100 + i;
    }
    std::vector<std::byte> data(kPieces * 200);
    for (std::byte& b : data) b = static_cast<std::byte>(random.next() >> 56U);
    const auto access = [&](bool write, std::vector<std::byte>& bytes) {
      for (int attempt = 0; attempt < 100; ++attempt) {
        std::uint32_t at = 0;
        MemoryResult result = MemoryResult::done;
        for (std::uint32_t i = 0; i < kPieces && result == MemoryResult::done; ++i) {
          const std::span<std::byte> piece(bytes.data() + at, lengths[i]);
          const MemoryCaller caller(9, responder, at);
          result = write ? region->provider().write(caller, places[i], piece)
                         : region->provider().read(caller, places[i], piece);
          at += lengths[i];
        }
        if (result != MemoryResult::pending) return result;
        REQUIRE(wait_ready(*tenant, 9));
      }
      return MemoryResult::fault;
    };
    REQUIRE(access(true, data) == MemoryResult::done);
    for (std::uint32_t i = 0, at = 0; i < kPieces; at += lengths[i++]) {
      if (i % 4 == 2) continue;  // written again by the next
      const std::vector<std::byte> there = program.peek(places[i], lengths[i]);
      CHECK(std::memcmp(there.data(), data.data() + at, lengths[i]) == 0);
    }
    // What the program has changed since is read, whatever was read from there before.
    std::vector<std::byte> fresh(lengths[0], static_cast<std::byte>(round));
    program.poke(places[0], fresh);
    std::vector<std::byte> seen(data.size());
    REQUIRE(access(false, seen) == MemoryResult::done);
    CHECK(std::memcmp(seen.data(), fresh.data(), fresh.size()) == 0);
    copies += 2 * kPieces;
    CHECK(tenant->counters().copies == copies);
  }
  tenant->remove(std::move(region));
}

TEST_CASE("more queue pairs than jobs: all of them get their answers", "[memory][threads]") {
  const Program program(4, by_copy);
  const auto tenant = TenantMemory::make(program.pinned(), [] {});
  auto region = whole(*tenant, program);
  constexpr std::uint32_t kPairs = 1000;
  std::vector<std::uint64_t> values(kPairs);
  std::iota(values.begin(), values.end(), 1);
  const auto write = [&](std::uint32_t qp) {
    return region->provider().write(MemoryCaller(qp, true), qp * 8,
                                    std::as_bytes(std::span(&values[qp], 1)));
  };
  std::vector<bool> done(kPairs);
  std::uint32_t missing = kPairs;
  for (std::uint32_t qp = 0; qp < kPairs; ++qp) REQUIRE(write(qp) == MemoryResult::pending);
  const timespec pause{0, 10'000};
  for (int i = 0; i < 100'000 && missing != 0; ++i) {
    std::array<std::uint32_t, 7> ready{};
    const std::size_t n = tenant->take_ready(ready);
    for (std::size_t k = 0; k < n; ++k) {
      if (done[ready[k]] || write(ready[k]) != MemoryResult::done) continue;
      done[ready[k]] = true;
      --missing;
    }
    if (n == 0) ::nanosleep(&pause, nullptr);
  }
  CHECK(missing == 0);
  const std::vector<std::byte> there = program.peek(0, kPairs * 8);
  CHECK(std::memcmp(there.data(), values.data(), there.size()) == 0);
  tenant->remove(std::move(region));
}

TEST_CASE("a queue pair that is forgotten leaves no answers behind", "[memory][threads]") {
  const Program program(4, by_copy);
  const auto tenant = TenantMemory::make(program.pinned(), [] {});
  auto region = whole(*tenant, program);
  std::array<std::byte, 8> bytes{};
  REQUIRE(region->provider().read(5, 0, bytes) == MemoryResult::pending);
  REQUIRE(wait_ready(*tenant, 5));
  const bool under_way = GENERATE(false, true);
  if (under_way) {
    static_cast<void>(region->provider().write(MemoryCaller(5, true), 8, bytes));
  }
  tenant->forget(5);
  program.poke(0, std::array<std::byte, 1>{std::byte{42}});
  // The next queue pair of that number reads again.
  REQUIRE(region->provider().read(5, 0, bytes) == MemoryResult::pending);
  REQUIRE(wait_ready(*tenant, 5));
  REQUIRE(region->provider().read(5, 0, bytes) == MemoryResult::done);
  CHECK(bytes[0] == std::byte{42});
  tenant->remove(std::move(region));
}

TEST_CASE("extents that lie are refused", "[memory]") {
  const Program program(4, [](std::size_t page) { return page == 1; });
  const auto tenant = TenantMemory::make(program.pinned(), [] {});
  using attach::Extent;
  using attach::ExtentKind;
  const auto refused = [&](std::uint64_t length, std::vector<Extent> extents) {
    int error = 0;
    return tenant->add(program.address(), length, extents, error) == nullptr ? error : 0;
  };
  const Extent page{kPage, 0, ExtentKind::shared, 0};
  CHECK(refused(kPage, {page}) == EINVAL);  // nothing was shared yet
  REQUIRE(tenant->share(program.shared_descriptor()) == 0);
  CHECK(tenant->share(program.shared_descriptor()) == EALREADY);
  CHECK(refused(kPage, {page}) == 0);
  CHECK(refused(0, {}) == EINVAL);
  CHECK(refused(kPage, {}) == EINVAL);
  CHECK(refused(2 * kPage, {page}) == EINVAL);
  CHECK(refused(kPage - 1, {page}) == EINVAL);
  CHECK(refused(kPage, {{kPage, 5 * kPage, ExtentKind::shared, 0}}) == EINVAL);  // behind its end
  CHECK(refused(kPage, {{kPage, 4 * kPage + 1, ExtentKind::shared, 0}}) == EINVAL);
  CHECK(refused(kPage, {{kPage, 100, ExtentKind::shared, 0}}) == EINVAL);
  CHECK(refused(kPage, {{kPage, ~std::uint64_t{0}, ExtentKind::shared, 0}}) == EINVAL);
  CHECK(refused(kPage, {{~std::uint64_t{0}, kPage, ExtentKind::by_copy, 0}, page}) == EINVAL);
  CHECK(refused(kPage, {{kPage, 0, static_cast<ExtentKind>(7), 0}}) == EINVAL);
  CHECK(refused(kPage, {{100, 0, ExtentKind::shared, 0},
                        {kPage - 100, 100, ExtentKind::shared, 0}}) == EINVAL);
  int error = 0;
  CHECK(tenant->add(~std::uint64_t{0} - 10, kPage, std::span(&page, 1), error) == nullptr);
  CHECK(error == EINVAL);

  const auto other = TenantMemory::make(program.pinned(), [] {});
  attach::Descriptor unsealed(::memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(unsealed.get(), kPage) == 0);
  CHECK(other->share(attach::Descriptor(::dup(unsealed.get()))) == EPERM);
  REQUIRE(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK) == 0);
  CHECK(other->share(attach::Descriptor(::dup(unsealed.get()))) == EPERM);
  REQUIRE(::fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SEAL) == 0);
  CHECK(other->share(std::move(unsealed)) == 0);
  CHECK(TenantMemory::make(program.pinned(), [] {
        })->share(attach::Descriptor(::open("/dev/null", O_RDWR | O_CLOEXEC))) == EPERM);
}

}  // namespace paceline::service::test
