#include "dataplane/base/containers/deadline_tree.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/base/units.h"

namespace paceline {
namespace {

constexpr std::uint32_t kNone = DeadlineTree::kNone;

TEST_CASE("an empty tree has nothing due") {
  DeadlineTree tree(5);
  CHECK(tree.empty());
  CHECK(tree.next_deadline() == kNever);
  CHECK(tree.pop_due(Picos{kNever.count - 1}) == kNone);
  for (std::uint32_t i = 0; i < 5; ++i) CHECK_FALSE(tree.contains(i));
  tree.cancel(3);
  CHECK(tree.empty());
}

TEST_CASE("an entry is due from its time on, to the picosecond") {
  DeadlineTree tree(1);
  tree.schedule(0, Picos{1000});
  CHECK(tree.contains(0));
  CHECK(tree.deadline_of(0) == Picos{1000});
  CHECK(tree.next_deadline() == Picos{1000});
  CHECK(tree.pop_due(Picos{999}) == kNone);
  CHECK(tree.pop_due(Picos{1000}) == 0);
  CHECK_FALSE(tree.contains(0));
  CHECK(tree.next_deadline() == kNever);
  CHECK(tree.pop_due(Picos{1000}) == kNone);
}

TEST_CASE("equal times are served by index, whatever the order of insertion") {
  DeadlineTree tree(100);
  for (const std::uint32_t i : {70U, 3U, 99U, 8U, 0U, 64U, 7U}) tree.schedule(i, Picos{5});
  for (const std::uint32_t i : {0U, 3U, 7U, 8U, 64U, 70U, 99U}) CHECK(tree.pop_due(Picos{5}) == i);
  CHECK(tree.pop_due(Picos{5}) == kNone);
}

TEST_CASE("a second schedule moves the entry, in either direction") {
  DeadlineTree tree(20);
  tree.schedule(4, Picos{100});
  tree.schedule(11, Picos{200});
  tree.schedule(4, Picos{300});
  CHECK(tree.next_deadline() == Picos{200});
  tree.schedule(4, Picos{50});
  CHECK(tree.next_deadline() == Picos{50});
  CHECK(tree.pop_due(Picos{1000}) == 4);
  CHECK(tree.pop_due(Picos{1000}) == 11);
  CHECK(tree.pop_due(Picos{1000}) == kNone);
}

TEST_CASE("after a pop the next deadline is exact, before anything else happens") {
  DeadlineTree tree(70);
  tree.schedule(0, Picos{1});
  tree.schedule(1, Picos{40});   // in the group of the popped leaf
  tree.schedule(9, Picos{30});   // in its neighbour
  tree.schedule(69, Picos{20});  // in another half of the tree
  CHECK(tree.pop_due(Picos{1}) == 0);
  CHECK(tree.next_deadline() == Picos{20});
  tree.cancel(69);
  CHECK(tree.next_deadline() == Picos{30});
  CHECK(tree.pop_due(Picos{30}) == 9);
  CHECK(tree.next_deadline() == Picos{40});
  CHECK(tree.pop_due(Picos{40}) == 1);
  CHECK(tree.next_deadline() == kNever);
}

TEST_CASE("a popped entry may return at the same time") {
  DeadlineTree tree(10);
  tree.schedule(2, Picos{7});
  tree.schedule(3, Picos{7});
  for (int i = 0; i < 5; ++i) {
    CHECK(tree.pop_due(Picos{7}) == 2);
    tree.schedule(2, Picos{7});
  }
  CHECK(tree.pop_due(Picos{7}) == 2);
  CHECK(tree.pop_due(Picos{7}) == 3);
}

TEST_CASE("scheduling at never takes the entry out") {
  DeadlineTree tree(3);
  tree.schedule(1, Picos{5});
  tree.schedule(1, kNever);
  CHECK_FALSE(tree.contains(1));
  CHECK(tree.empty());
}

TEST_CASE("times before the start of the clock are in order too") {
  DeadlineTree tree(3);
  tree.schedule(0, Picos{0});
  tree.schedule(1, Picos{std::numeric_limits<std::int64_t>::min()});
  tree.schedule(2, Picos{-1});
  CHECK(tree.pop_due(Picos{0}) == 1);
  CHECK(tree.pop_due(Picos{0}) == 2);
  CHECK(tree.pop_due(Picos{0}) == 0);
}

TEST_CASE("random operations agree with a sorted set of (time, index)") {
  const auto [seed, indices, horizon] =
      GENERATE(table<std::uint64_t, std::uint32_t, std::uint64_t>({{1, 1, 50},
                                                                   {2, 2, 50},
                                                                   {3, 7, 20},
                                                                   {4, 8, 1000},
                                                                   {5, 9, 1000},
                                                                   {6, 32, 10},  // many equal times
                                                                   {7, 64, 100'000},
                                                                   {8, 65, 300},
                                                                   {9, 513, 100'000},
                                                                   {10, 5000, 1'000'000}}));
  INFO("seed " << seed << ", " << indices << " indices, horizon " << horizon);
  Random random(seed);
  std::uint32_t reserved = 1 + static_cast<std::uint32_t>(random.below(indices));
  DeadlineTree tree(reserved);
  std::set<std::pair<std::int64_t, std::uint32_t>> model;
  std::vector<std::int64_t> at(indices, -1);  // -1: not in
  std::int64_t now = 0;
  std::uint64_t pops = 0;
  const auto model_set = [&](std::uint32_t index, std::int64_t time) {
    if (at[index] >= 0) model.erase({at[index], index});
    at[index] = time;
    if (time >= 0) model.insert({time, index});
  };
  for (int step = 0; step < 40'000; ++step) {
    const auto index = static_cast<std::uint32_t>(random.below(reserved));
    const std::int64_t time = now + static_cast<std::int64_t>(random.below(horizon));
    switch (random.below(8)) {
      case 0:
      case 1:
      case 2:
        tree.schedule(index, Picos{time});
        model_set(index, time);
        break;
      case 3:
        tree.cancel(index);
        model_set(index, -1);
        break;
      case 4:
        now += static_cast<std::int64_t>(random.below(1 + horizon / 8));
        break;
      case 5:  // the clock jumps to the next deadline, as in virtual time
        if (!model.empty() && model.begin()->first > now) now = model.begin()->first;
        break;
      case 6:
        if (random.below(2000) == 0 && reserved < indices) {
          reserved += 1 + static_cast<std::uint32_t>(random.below(indices - reserved));
          tree.reserve(reserved);
        }
        break;
      default: {
        std::uint32_t expected = kNone;
        if (!model.empty() && model.begin()->first <= now) {
          expected = model.begin()->second;
          model_set(expected, -1);
          ++pops;
        }
        REQUIRE(tree.pop_due(Picos{now}) == expected);
        if (expected != kNone && random.below(2) == 0) {  // the pacer's habit
          tree.schedule(expected, Picos{time});
          model_set(expected, time);
        }
      }
    }
    // Looked at in some steps only: looking must not be what keeps the tree right.
    if (random.below(2) == 0) {
      REQUIRE(tree.next_deadline() == (model.empty() ? kNever : Picos{model.begin()->first}));
    }
    REQUIRE(tree.contains(index) == (at[index] >= 0));
  }
  CHECK(pops > 500);
  while (!model.empty()) {
    REQUIRE(tree.pop_due(Picos{kNever.count - 1}) == model.begin()->second);
    model.erase(model.begin());
  }
  CHECK(tree.empty());
}

TEST_CASE("a copy is independent of its original") {
  DeadlineTree tree(9);
  tree.schedule(8, Picos{3});
  DeadlineTree copy = tree;
  CHECK(copy.pop_due(Picos{3}) == 8);
  CHECK(tree.pop_due(Picos{3}) == 8);
}

}  // namespace
}  // namespace paceline
