// The service makes no page of a program's file, whatever the program does to it.
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cerrno>
#include <vector>

#include "dataplane/service/memory/tenant_memory.h"
#include "dataplane/service/memory/view_guard.h"
#include "tests/unit/service_memory/program.h"

namespace paceline::service::test {
namespace {

// A sealed file of `pages`, of which the first `written` were written.
attach::Descriptor file_of(std::size_t pages, std::size_t written) {
  attach::Descriptor file(::memfd_create("pages", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  REQUIRE(::ftruncate(file.get(), static_cast<off_t>(pages * kPage)) == 0);
  const std::vector<char> bytes(written * kPage, 'x');
  REQUIRE(::pwrite(file.get(), bytes.data(), bytes.size(), 0) ==
          static_cast<ssize_t>(bytes.size()));
  REQUIRE(::fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) == 0);
  return file;
}

std::size_t pages_in(const attach::Descriptor& file) {
  struct stat status {};
  REQUIRE(::fstat(file.get(), &status) == 0);
  return static_cast<std::size_t>(status.st_blocks) * 512 / kPage;
}

std::unique_ptr<RegionMemory> shared(TenantMemory& tenant, std::size_t pages, int& error) {
  const attach::Extent all{pages * kPage, 0, attach::ExtentKind::shared, 0};
  return tenant.add(64 * kPage, all.length, std::span(&all, 1), error);
}

}  // namespace

TEST_CASE("pages that a program never had are refused and not made", "[memory]") {
  const attach::Descriptor file = file_of(2000, 1000);
  const auto tenant = TenantMemory::make(nullptr, [] {});
  REQUIRE(tenant->share(attach::Descriptor(::dup(file.get()))) == 0);
  int error = 0;
  CHECK(shared(*tenant, 2000, error) == nullptr);
  CHECK(error == ENODATA);
  CHECK(shared(*tenant, 1001, error) == nullptr);
  CHECK(error == ENODATA);
  auto region = shared(*tenant, 1000, error);
  REQUIRE(region != nullptr);
  CHECK(pages_in(file) == 1000);
  CHECK(region->holds(reinterpret_cast<std::uintptr_t>(region->plain().data())));
  CHECK_FALSE(region->holds(reinterpret_cast<std::uintptr_t>(&error)));
  tenant->remove(std::move(region));
  CHECK(tenant->counters().shared_bytes == 0);
}

TEST_CASE("pages that a program takes away are not made again, and it is told",
          "[memory][may_skip]") {
  if (view_guard::spoilt_event() < 0) {
    WARN("skipped: no userfaultfd here");
    return;
  }
  std::array<std::uintptr_t, view_guard::kRemembered> addresses{};
  view_guard::take_spoilt(addresses);
  const attach::Descriptor file = file_of(100, 100);
  const auto tenant = TenantMemory::make(nullptr, [] {});
  REQUIRE(tenant->share(attach::Descriptor(::dup(file.get()))) == 0);
  int error = 0;
  auto region = shared(*tenant, 100, error);
  REQUIRE(region != nullptr);
  const std::span<std::byte> plain = region->plain();
  CHECK(plain[50 * kPage] == std::byte{'x'});
  CHECK(view_guard::take_spoilt(addresses) == 0);
  REQUIRE(::fallocate(file.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 90 * kPage) == 0);
  CHECK(plain[3 * kPage + 5] == std::byte{0});
  plain[7 * kPage] = std::byte{1};
  CHECK(plain[7 * kPage] == std::byte{1});
  CHECK(plain[95 * kPage] == std::byte{'x'});
  CHECK(pages_in(file) == 10);
  REQUIRE(view_guard::take_spoilt(addresses) == 2);
  const auto at = [&](std::size_t byte) {
    return reinterpret_cast<std::uintptr_t>(plain.data() + byte);
  };
  CHECK(std::count(addresses.begin(), addresses.end(), at(3 * kPage + 5)) == 1);
  CHECK(std::count(addresses.begin(), addresses.end(), at(7 * kPage)) == 1);
  // New writes of the program there are visible again.
  REQUIRE(::pwrite(file.get(), "y", 1, 20 * kPage) == 1);
  CHECK(plain[20 * kPage] == std::byte{'y'});
  CHECK(view_guard::take_spoilt(addresses) == 0);
  tenant->remove(std::move(region));
}

}  // namespace paceline::service::test
