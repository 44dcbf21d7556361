#include "dataplane/base/containers/fixed_ring.h"

#include <catch2/catch.hpp>
#include <deque>

#include "dataplane/base/numbers/random.h"

namespace paceline {
namespace {

TEST_CASE("the capacity is the next power of two", "[base]") {
  const struct {
    std::size_t asked;
    std::uint32_t capacity;
  } rows[] = {{0, 1}, {1, 1}, {2, 2}, {3, 4}, {128, 128}, {129, 256}};
  for (const auto& row : rows) CHECK(FixedRing<int>(row.asked).capacity() == row.capacity);
}

TEST_CASE("a ring is a queue whose elements keep their positions", "[base]") {
  Random random(7);
  FixedRing<int> ring(5);
  std::deque<std::pair<std::uint32_t, int>> model;
  for (int i = 0; i < 10'000; ++i) {
    CHECK(ring.full() == (model.size() == 8));
    CHECK(ring.empty() == model.empty());
    CHECK(ring.size() == model.size());
    if (random.below(2) == 0 && !ring.full()) {
      model.emplace_back(ring.tail(), i);
      ring.push(i);
    } else if (!ring.empty()) {
      CHECK(ring.front() == model.front().second);
      for (const auto& [position, value] : model) CHECK(ring.at(position) == value);
      CHECK(ring.head() == model.front().first);
      ring.pop();
      model.pop_front();
    }
  }
  ring.clear();
  CHECK(ring.empty());
}

}  // namespace
}  // namespace paceline
