#include "dataplane/driver/traffic/pattern_memory.h"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

namespace paceline {
namespace {

using transport::MemoryResult;

TEST_CASE("pattern memory: bytes follow from seed and address, however they are asked for") {
  PatternMemory memory(7);
  std::vector<std::byte> whole(100);
  const std::uint64_t base = (std::uint64_t{5} << 31) + 3;
  REQUIRE(memory.read(1, base, whole) == MemoryResult::done);
  for (std::size_t from = 0; from < 20; ++from) {
    for (std::size_t n = 0; n < 20; ++n) {
      std::vector<std::byte> part(n);
      REQUIRE(memory.read(2, base + from, part) == MemoryResult::done);
      CHECK(
          std::equal(part.begin(), part.end(), whole.begin() + static_cast<std::ptrdiff_t>(from)));
    }
  }
  std::vector<std::byte> other(100);
  REQUIRE(PatternMemory(8).read(1, base, other) == MemoryResult::done);
  CHECK(other != whole);
  REQUIRE(memory.read(1, base + 8, other) == MemoryResult::done);
  CHECK(other != whole);
}

TEST_CASE("pattern memory: what does not belong to an address is a fault") {
  PatternMemory memory(7);
  std::array<std::byte, 37> bytes;
  REQUIRE(memory.read(1, 1001, bytes) == MemoryResult::done);
  CHECK(memory.write(1, 1001, bytes) == MemoryResult::done);
  CHECK(memory.write(1, 1002, bytes) == MemoryResult::fault);
  for (std::byte& byte : bytes) {
    byte ^= std::byte{0x10};
    CHECK(memory.write(1, 1001, bytes) == MemoryResult::fault);
    byte ^= std::byte{0x10};
  }
}

}  // namespace
}  // namespace paceline
