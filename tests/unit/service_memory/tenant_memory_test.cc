#include "dataplane/service/memory/tenant_memory.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cerrno>
#include <cstring>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/service_memory/program.h"

namespace paceline::service::test {
namespace {

using transport::AtomicOperation;
using transport::MemoryResult;

void no_wake() {}

std::vector<std::byte> noise(Random& random, std::size_t bytes) {
  std::vector<std::byte> out(bytes);
  for (std::byte& b : out) b = static_cast<std::byte>(random.next() >> 56U);
  return out;
}

struct Mix {
  const char* name;
  bool (*shared)(std::size_t);
};

}  // namespace

TEST_CASE("what is written through a region is what the program sees", "[memory][threads]") {
  const Mix mixes[] = {
      {"all by copy", [](std::size_t) { return false; }},
      {"edges by copy", [](std::size_t page) { return page > 0 && page < 11; }},
      {"every third page shared", [](std::size_t page) { return page % 3 == 1; }},
      {"a hole in the middle", [](std::size_t page) { return page < 5 || page > 6; }},
  };
  for (const Mix& mix : mixes) {
    for (const std::uint64_t seed : {1U, 2U}) {
      INFO(mix.name << ", seed " << seed);
      Random random(seed);
      const Program program(12, mix.shared);
      const auto tenant = TenantMemory::make(program.pinned(), no_wake);
      REQUIRE(tenant->share(program.shared_descriptor()) == 0);
      const std::uint64_t first = random.next() % kPage;
      const std::uint64_t length = program.bytes() - first - random.next() % kPage;
      int error = -1;
      auto region =
          tenant->add(program.address() + first, length, program.extents(first, length), error);
      REQUIRE(error == 0);
      CHECK(region->plain().empty());
      CHECK(tenant->counters().shared_bytes + tenant->counters().by_copy_bytes == length);

      std::vector<std::byte> model = program.peek(first, length);
      for (int i = 0; i < 300; ++i) {
        const std::uint64_t bytes = 1 + random.next() % kPage;
        const std::uint64_t offset = random.next() % (length - bytes + 1);
        if (random.next() % 2 == 0) {
          const std::vector<std::byte> data = noise(random, bytes);
          REQUIRE(write_through(*tenant, *region, offset, data) == MemoryResult::done);
          std::copy(data.begin(), data.end(), model.begin() + static_cast<std::ptrdiff_t>(offset));
        } else {
          std::vector<std::byte> seen(bytes);
          REQUIRE(read_through(*tenant, *region, offset, seen) == MemoryResult::done);
          REQUIRE(std::equal(seen.begin(), seen.end(),
                             model.begin() + static_cast<std::ptrdiff_t>(offset)));
        }
        const std::uint64_t word = (offset & ~std::uint64_t{7}) % (length - 7);
        AtomicOperation operation;
        operation.compare_swap = random.next() % 2 == 0;
        operation.swap_add = random.next();
        std::uint64_t expected = 0;
        std::memcpy(&expected, &model[word], sizeof expected);
        operation.compare = expected + random.next() % 2;
        std::uint64_t original = 0;
        REQUIRE(atomic_through(*tenant, *region, word, operation, original) == MemoryResult::done);
        REQUIRE(original == expected);
        const std::uint64_t result = operation.result(expected);
        std::memcpy(&model[word], &result, sizeof result);
      }
      CHECK(program.peek(first, length) == model);
      CHECK(tenant->counters().faults == 0);
      tenant->remove(std::move(region));
      CHECK(tenant->counters().shared_bytes + tenant->counters().by_copy_bytes == 0);
    }
  }
}

TEST_CASE("a region that lies in shared memory as a whole is plain memory", "[memory]") {
  const Program program(4, [](std::size_t) { return true; });
  const auto tenant = TenantMemory::make(program.pinned(), no_wake);
  REQUIRE(tenant->share(program.shared_descriptor()) == 0);
  int error = -1;
  const std::uint64_t first = 100;
  const std::uint64_t length = 3 * kPage;
  auto region =
      tenant->add(program.address() + first, length, program.extents(first, length), error);
  REQUIRE(error == 0);
  const std::span<std::byte> plain = region->plain();
  REQUIRE(plain.size() == length);
  for (std::size_t i = 0; i < length; ++i) plain[i] = static_cast<std::byte>(i * 7);
  const std::vector<std::byte> seen = program.peek(first, length);
  CHECK(std::equal(seen.begin(), seen.end(), plain.begin()));
  CHECK(tenant->counters().copies == 0);
  tenant->remove(std::move(region));
}

TEST_CASE("memory that the program has not is a fault, and the tenant lives on",
          "[memory][threads]") {
  Program program(4, [](std::size_t) { return false; });
  const auto tenant = TenantMemory::make(program.pinned(), no_wake);
  int error = -1;
  auto good =
      tenant->add(program.address(), program.bytes(), program.extents(0, program.bytes()), error);
  REQUIRE(error == 0);
  const attach::Extent nowhere{kPage, 0, attach::ExtentKind::by_copy, 0};
  auto bad = tenant->add(16 * kPage, kPage, std::span(&nowhere, 1), error);
  REQUIRE(error == 0);
  std::vector<std::byte> bytes(100);
  CHECK(read_through(*tenant, *bad, 0, bytes) == MemoryResult::fault);
  CHECK(write_through(*tenant, *bad, 0, bytes) == MemoryResult::fault);
  CHECK(tenant->counters().faults == 2);
  CHECK(read_through(*tenant, *good, 0, bytes) == MemoryResult::done);
  // Out of bounds, though the engine has looked already.
  CHECK(read_through(*tenant, *good, program.bytes() - 99, bytes) == MemoryResult::fault);
  program.end();
  CHECK(read_through(*tenant, *good, 0, bytes) == MemoryResult::fault);
  tenant->remove(std::move(good));
  tenant->remove(std::move(bad));
}

}  // namespace paceline::service::test
