#include "control/experiment/live/plan/schedule.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "tests/unit/experiment_live/synthetic.h"

using namespace paceline;
using namespace paceline::experiment::live;
using namespace paceline::experiment::live::test;

TEST_CASE("every cluster is in both arms once in every pair, and orders are balanced") {
  for (std::uint64_t seed = 1; seed <= 30; ++seed) {
    INFO("seed " << seed);
    for (const std::uint32_t clusters : {1U, 2U, 5U, 8U}) {
      Plan plan = clusters == 1 ? switchback_plan(50, seed) : cluster_plan(50, clusters, seed);
      plan.stratum = plan.block * 20;  // ten pairs
      const Schedule s = make_schedule(plan);
      std::uint32_t first_in_stratum = 0;
      for (std::uint32_t p = 0; p < s.pairs(); ++p) {
        std::uint32_t in_one = 0;
        for (std::uint32_t c = 0; c < clusters; ++c) {
          CHECK(s.arm(2 * p, c) + s.arm(2 * p + 1, c) == 1);
          in_one += s.arm(2 * p, c);
        }
        if (s.mechanism.whole(p)) {
          CHECK((in_one == 0 || in_one == clusters));
        } else {
          CHECK(in_one >= clusters / 2);
          CHECK(in_one <= (clusters + 1) / 2);
        }
        first_in_stratum += s.arm(2 * p, 0);
        if (p % 10 == 9) {
          CHECK(first_in_stratum == 5);  // half of each stratum, so drift sides with nobody
          first_in_stratum = 0;
        }
      }
    }
  }
}

TEST_CASE("all assignments are drawn, equally often") {
  // Two pairs in one stratum of two: orders 01 and 10; as coins, four.
  Mechanism m;
  m.blocks = 4;
  m.stratum_pairs = 2;
  Random random(3);
  int first = 0;
  for (int i = 0; i < 2000; ++i) {
    const Assignment a = draw_assignment(m, random);
    CHECK(a[0] + a[2] == 1);
    first += a[0];
  }
  CHECK(first == Approx(1000).margin(110));
  m.stratum_pairs = 1;
  int counts[4] = {};
  for (int i = 0; i < 4000; ++i) {
    const Assignment a = draw_assignment(m, random);
    ++counts[a[0] * 2 + a[2]];
  }
  for (const int count : counts) CHECK(count == Approx(1000).margin(140));
}

TEST_CASE("with carry-over arms are drawn at 1, 2m + 1, 3m + 1, ...") {
  Mechanism m;
  m.blocks = 24;
  m.carryover = 3;
  // From 0: 0, 6, 9, 12, 15, 18, and the last run is two of them long, too.
  CHECK(m.points() == std::vector<std::uint32_t>{0, 6, 9, 12, 15, 18});
  Random random(4);
  std::vector<bool> changed(24, false);
  for (int i = 0; i < 200; ++i) {
    const Assignment a = draw_assignment(m, random);
    REQUIRE(a.size() == 24);
    for (std::uint32_t b = 1; b < 24; ++b) changed[b] = changed[b] || a[b] != a[b - 1];
  }
  for (std::uint32_t b = 1; b < 24; ++b) {
    INFO("block " << b);
    CHECK(changed[b] == (b == 6 || b == 9 || b == 12 || b == 15 || b == 18));
  }
}

TEST_CASE("the seed alone decides, and the file says it") {
  const Plan plan = cluster_plan(20, 3, 77);
  const Schedule a = make_schedule(plan);
  CHECK(schedule_text(a) == schedule_text(make_schedule(plan)));
  Plan other = plan;
  other.seed = 78;
  CHECK(make_schedule(other).arms != a.arms);
  const auto read = read_schedule(schedule_text(a), "schedule.json", &plan);
  REQUIRE(read.errors == std::vector<std::string>{});
  CHECK(read.value.arms == a.arms);
  CHECK(read.value.clusters == a.clusters);
  CHECK(schedule_text(read.value) == schedule_text(a));
}

TEST_CASE("a schedule or plan that was changed after registration is refused") {
  const Plan plan = switchback_plan(20, 5);
  const std::string text = schedule_text(make_schedule(plan));
  std::string edited = text;
  const std::size_t at = edited.find("\"blocks\"");
  const std::size_t digit = edited.find_first_of("01", edited.find('[', at));
  edited[digit] = edited[digit] == '0' ? '1' : '0';
  const auto blocks = read_schedule(edited, "s", &plan);
  REQUIRE(blocks.errors.size() == 1);
  CHECK(blocks.errors[0].find("changed after it was registered") != std::string::npos);
  Plan eased = plan;
  eased.minimum_effect = 0.1;
  const auto moved = read_schedule(text, "s", &eased);
  REQUIRE(moved.errors.size() == 1);
  CHECK(moved.errors[0].find("plan was changed") != std::string::npos);
  CHECK_FALSE(read_schedule("[]", "s", nullptr).ok());
  CHECK_FALSE(read_schedule("{\"schema\":2}", "s", nullptr).ok());
  CHECK_FALSE(read_schedule(text.substr(0, text.size() / 2), "s", nullptr).ok());
}

TEST_CASE("epochs are never 0 and never the same in neighbours") {
  for (std::uint32_t b = 0; b < 600; ++b) {
    CHECK(Schedule::epoch(b) >= 1);
    CHECK(Schedule::epoch(b) != Schedule::epoch(b + 1));
  }
}
