#include "dataplane/driver/virtual/large_pages.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline {
namespace {

TEST_CASE("large pages: aligned, apart from one another, all of it writable") {
  LargePages memory;
  Random random(3);
  std::vector<std::pair<std::byte*, std::size_t>> blocks;
  std::size_t total = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    const std::size_t alignment = std::size_t{1} << random.below(8);
    const std::size_t bytes =
        i % 500 == 0 ? LargePages::kPageBytes + random.below(5000) : 1 + random.below(4000);
    auto* const block = static_cast<std::byte*>(memory.allocate(bytes, alignment));
    REQUIRE(reinterpret_cast<std::uintptr_t>(block) % alignment == 0);
    std::memset(block, static_cast<int>(i & 0xFF), bytes);
    blocks.emplace_back(block, bytes);
    total += bytes;
  }
  // Nobody wrote into another one's.
  for (unsigned i = 0; i < blocks.size(); ++i) {
    const auto [block, bytes] = blocks[i];
    REQUIRE(block[0] == std::byte(i & 0xFF));
    REQUIRE(block[bytes - 1] == std::byte(i & 0xFF));
  }
  CHECK(memory.reserved() % LargePages::kPageBytes == 0);
  CHECK(memory.reserved() >= total);
  CHECK(memory.reserved() < 4 * total + LargePages::kPageBytes);
}

TEST_CASE("large pages: a first small request takes one page") {
  LargePages memory;
  CHECK(memory.reserved() == 0);
  static_cast<void>(memory.allocate(64, 64));
  CHECK(memory.reserved() == LargePages::kPageBytes);
}

}  // namespace
}  // namespace paceline
