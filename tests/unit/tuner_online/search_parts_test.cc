// The parts of the search: paired test, bandit, climb.
#include <catch2/catch.hpp>
#include <cmath>

#include "control/tuner/online/candidates/bandit.h"
#include "control/tuner/online/candidates/climb.h"
#include "control/tuner/online/candidates/paired_test.h"
#include "dataplane/base/numbers/distributions.h"
#include "tests/unit/tuner_online/synthetic_plant.h"

namespace paceline::tuner::online {
namespace {

Verdict judged(PairedTest& test, const TestOptions& options, double effect, double sd,
               Random& random) {
  for (;;) {
    test.add(effect + sd * standard_normal(random));
    const Verdict verdict = test.verdict(options);
    if (verdict != Verdict::go_on) return verdict;
  }
}

TEST_CASE("paired test: takes less than 6.5 % of 2,000 moves that change nothing",
          "[tuner_online]") {
  const TestOptions options;
  // Assumed spreads of a pair's difference of J: a quiet fabric, and ten times that.
  for (const double sd : {0.03, 0.3}) {
    std::size_t accepted = 0;
    for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
      Random random(seed, 5);
      PairedTest test;
      if (judged(test, options, 0, sd, random) == Verdict::accept) ++accepted;
      CHECK(test.n <= options.most_pairs);
    }
    INFO(accepted << " of 2000 at sd " << sd);
    CHECK(accepted < 130);
    CHECK(accepted > 0);  // a rule that never accepts would pass the line above
  }
}

TEST_CASE("paired test: noise that is not normal does not fool it either", "[tuner_online]") {
  const TestOptions options;
  std::size_t accepted = 0;
  for (std::uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed, 6);
    PairedTest test;
    Verdict verdict = Verdict::go_on;
    while (verdict == Verdict::go_on) {
      // Differences of two p99s: heavy on both sides (Laplace).
      test.add(exponential(random, 0.05) - exponential(random, 0.05));
      verdict = test.verdict(options);
    }
    if (verdict == Verdict::accept) ++accepted;
  }
  INFO(accepted << " of 2000");
  CHECK(accepted < 130);
}

TEST_CASE("paired test: finds an effect of its size, drops what is worse", "[tuner_online]") {
  const TestOptions options;
  std::size_t found = 0;
  std::size_t taken_worse = 0;
  for (std::uint64_t seed = 1; seed <= 500; ++seed) {
    Random random(seed, 7);
    PairedTest better;
    if (judged(better, options, 0.1, 0.1, random) == Verdict::accept) ++found;
    PairedTest worse;
    if (judged(worse, options, -0.05, 0.1, random) == Verdict::accept) ++taken_worse;
  }
  CHECK(found > 450);
  CHECK(taken_worse < 10);
}

TEST_CASE("paired test: keeping a constraint that the incumbent breaks is reason enough",
          "[tuner_online]") {
  const TestOptions options;
  PairedTest test;
  for (std::uint32_t i = 0; i < options.least_pairs; ++i) {
    test.add(i % 2 == 0 ? 0.1 : -0.1);
    test.incumbent_breaches += i % 2;
  }
  CHECK(test.verdict(options) == Verdict::accept);
  test.incumbent_breaches = 1;
  CHECK(test.verdict(options) == Verdict::go_on);
  PairedTest worse;
  for (std::uint32_t i = 0; i < 12; ++i) worse.add(i % 2 == 0 ? -0.9 : -1.1);
  worse.incumbent_breaches = 12;
  CHECK(worse.verdict(options) == Verdict::drop);
}

BanditArm arm(const char* name, double mean, double sd) {
  BanditArm out;
  out.name = name;
  out.prior_mean = mean;
  out.prior_sd = sd;
  return out;
}

TEST_CASE("bandit: draws the best most often, and nobody when the incumbent is", "[tuner_online]") {
  Random random(1);
  Bandit bandit({arm("a", 0, 0.3), arm("b", 0, 0.3), arm("c", 0, 0.3)});
  const double truth[] = {-0.2, 0.3, 0.1};
  std::array<int, 4> drawn{};
  for (int i = 0; i < 300; ++i) {
    const auto chosen = bandit.draw(random);
    ++drawn[chosen.value_or(3)];
    if (chosen) bandit.observe(*chosen, truth[*chosen] + 0.1 * standard_normal(random));
  }
  CHECK(drawn[1] > 250);
  CHECK(bandit.mean(bandit.arms()[1]) == Approx(0.3).margin(0.05));
  // b is the incumbent now; what was known of the others is known relative to it.
  const double c = bandit.mean(bandit.arms()[2]) - bandit.mean(bandit.arms()[1]);
  bandit.promote(1, arm("champion", 0, 0.3));
  CHECK(bandit.arms()[1].name == "champion");
  CHECK(bandit.mean(bandit.arms()[1]) == Approx(-0.3).margin(0.05));
  CHECK(bandit.mean(bandit.arms()[2]) == Approx(c));
  int nobody = 0;
  for (int i = 0; i < 100; ++i) nobody += bandit.draw(random) ? 0 : 1;
  CHECK(nobody > 70);
}

TEST_CASE("bandit: what was long ago is forgotten", "[tuner_online]") {
  Bandit bandit({arm("a", 0, 1)});
  for (int i = 0; i < 500; ++i) bandit.observe(0, 1);
  for (int i = 0; i < 300; ++i) bandit.observe(0, -1);
  CHECK(bandit.mean(bandit.arms()[0]) < -0.8);
  CHECK(bandit.arms()[0].weight == Approx(100).epsilon(0.05));  // 1 / (1 - .99)
}

TEST_CASE("bandit: an arm that is out is not drawn", "[tuner_online]") {
  Random random(1);
  Bandit bandit({arm("a", 5, 0.1)});
  CHECK(bandit.draw(random) == 0U);
  bandit.arms()[0].out = true;
  CHECK_FALSE(bandit.draw(random));
}

TEST_CASE("climb: a notch is a quarter, a count one, and ranges end it", "[tuner_online]") {
  const auto& specs = test::dcqcn().params;
  const auto& timer = specs[test::param("increase_timer_us")];
  CHECK(*one_notch(timer, 100, true) == 125);
  CHECK(*one_notch(timer, 100, false) == 80);
  CHECK_FALSE(one_notch(timer, 1, false));
  const auto& stages = specs[test::param("fast_recovery_stages")];
  CHECK(*one_notch(stages, 5, true) == 6);
  CHECK_FALSE(one_notch(stages, 31, true));
  CHECK_FALSE(one_notch(specs[test::param("hyper_ramp")], 1, false));
  CHECK_FALSE(one_notch(timer, 0, true));
  const auto& counter = specs[test::param("byte_counter")];
  CHECK(*one_notch(counter, 2, true) == 3);
  CHECK(*one_notch(counter, 2, false) == 1);
}

TEST_CASE("climb: tries every neighbour once, and again after an acceptance", "[tuner_online]") {
  const Climb climb(test::dcqcn(), {});
  ClimbState state;
  const auto start = test::paper();
  std::vector<std::pair<std::size_t, bool>> seen;
  while (const auto move = climb.next(state, start, 0)) {
    CHECK(move->from == start[move->param]);
    seen.emplace_back(move->param, move->up);
    climb.judged(state, *move, false);
  }
  CHECK(seen.size() == 14);
  std::sort(seen.begin(), seen.end());
  CHECK(std::adjacent_find(seen.begin(), seen.end()) == seen.end());
  climb.forget(state);
  const auto move = climb.next(state, start, 0);
  REQUIRE(move);
  auto next = start;
  next[move->param] = move->to;
  climb.judged(state, *move, true);
  const auto again = climb.next(state, next, 0);
  REQUIRE(again);
  CHECK(again->param == move->param);  // on in the same direction
  CHECK(again->up == move->up);
}

TEST_CASE("climb: never farther than two notches an hour", "[tuner_online]") {
  const Climb climb(test::dcqcn(), {});
  ClimbState state;
  auto values = test::paper();
  const auto anchor = values;
  constexpr std::int64_t kHour_ns = 3'600'000'000'000;
  const auto walk = [&](std::int64_t now) {
    while (const auto move = climb.next(state, values, now)) {
      if (!move->up) {
        climb.judged(state, *move, false);
        continue;
      }
      values[move->param] = move->to;
      climb.judged(state, *move, true);
    }
  };
  walk(0);
  for (const std::size_t p : tuned_params(test::dcqcn())) {
    CHECK(notches_between(test::dcqcn().params[p], anchor[p], values[p]) == Approx(2).margin(0.06));
  }
  walk(kHour_ns - 1);
  const std::size_t p = test::param("additive_increase_mbps");
  CHECK(values[p] == Approx(62.5));
  climb.forget(state);
  walk(kHour_ns);
  CHECK(values[p] == Approx(97.7).margin(0.3));
}

TEST_CASE("climb: every algorithm has something to tune", "[tuner_online]") {
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    for (const std::size_t p : tuned_params(info)) CHECK(info.params[p].live);
    if (info.name == "dcqcn" || info.name == "cadence" || info.name == "swift") {
      CHECK(tuned_params(info).size() >= 5);
    }
  }
}

}  // namespace
}  // namespace paceline::tuner::online
