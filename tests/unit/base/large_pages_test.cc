#include "dataplane/base/large_pages.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <memory_resource>
#include <utility>
#include <vector>

#include "dataplane/base/random.h"
#include "dataplane/base/slab.h"

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

struct Witness {
  Witness(std::vector<int>& log_, int id_) : log(log_), id(id_) {}
  Witness(const Witness&) = delete;
  Witness& operator=(const Witness&) = delete;
  ~Witness() { log.push_back(id); }
  std::vector<int>& log;
  int id;
};

TEST_CASE("slab: objects stay where they are and are destroyed last one first") {
  std::vector<int> log;
  {
    Slab<Witness> slab(3, *std::pmr::new_delete_resource());
    Witness* const first = &slab.emplace(log, 1);
    slab.emplace(log, 2);
    CHECK(slab.size() == 2);
    CHECK(&slab[0] == first);
    CHECK(slab.end() - slab.begin() == 2);
    CHECK(slab[1].id == 2);
  }
  CHECK(log == std::vector<int>{2, 1});
}

}  // namespace
}  // namespace paceline
