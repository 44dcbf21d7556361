#include "control/experiment/live/analysis/balance.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/unit/experiment_live/synthetic.h"

using namespace paceline;
using namespace paceline::experiment;
using namespace paceline::experiment::live;
using namespace paceline::experiment::live::test;

TEST_CASE("chi-square of shares, and the exact test where counts are small") {
  CHECK(chi_square_survival(3.841459, 1) == Approx(0.05).epsilon(1e-5));
  // 60 of 100 heads: chi-square 4, p = .0455.
  CHECK(share_test({60, 40}, {1, 1}) == Approx(0.0455).epsilon(1e-2));
  // 8 of 8: 2 / 2^8.
  CHECK(share_test({8, 0}, {1, 1}) == Approx(2.0 / 256));
  CHECK(std::isnan(share_test({0, 0}, {1, 1})));
  CHECK_THROWS_AS(share_test({1, 1}, {0, 1}), std::invalid_argument);
}

TEST_CASE("losses: chi-square of the table, and Fisher's exact test where it is thin") {
  // Tea tasting: of four and four, all four lost on one side: 2 / 70.
  CHECK(loss_test({4, 0}, {4, 4}) == Approx(2.0 / 70));
  // 2 x 2 of (30, 70) and (10, 90): n (ad - bc)^2 / ... = 12.5.
  CHECK(loss_test({30, 10}, {100, 100}) == Approx(chi_square_survival(12.5, 1)));
  CHECK(std::isnan(loss_test({0, 0}, {5, 5})));
  CHECK_THROWS_AS(loss_test({6, 0}, {5, 5}), std::invalid_argument);
}

TEST_CASE("amounts that come in bursts are judged by how they vary") {
  CHECK(pairs_test(std::vector<double>{1, -1, 1, -1}) == 1);
  CHECK(pairs_test(std::vector<double>(20, 3.5)) == Approx(chi_square_survival(20, 1)));
  CHECK(std::isnan(pairs_test(std::vector<double>{1})));
  CHECK(pairs_test(std::vector<double>(5, 0.0)) == 1);
}

TEST_CASE("two blocks of a hundred lost in one arm stop the analysis") {
  const Plan plan = switchback_plan(800, 4);
  const Schedule schedule = make_schedule(plan);
  Random random(5);
  auto records = draw_blocks(schedule, random, [](const BlockPlace& place, Random& r) {
    return 1 - 0.2 * place.arm + 0.05 * standard_normal(r);
  });
  Circumstances now;
  now.finished = true;
  now.calibrated = true;
  constexpr AnalysisOptions kQuick{.full = true, .redraws = 200, .resamples = 200};
  const LiveAnalysis whole = analyse_live(plan, schedule, records, now, kQuick);
  CHECK_FALSE(whole.mismatch());
  CHECK(whole.verdict == Verdict::ship);

  std::erase_if(records, [seen = 0](const BlockRecord& r) mutable {
    return r.place.arm == 1 && ++seen % 50 == 0;
  });
  const LiveAnalysis lost = analyse_live(plan, schedule, records, now, kQuick);
  CHECK(lost.usable == 784);
  CHECK(lost.mismatch());
  CHECK(lost.verdict == Verdict::invalid);

  // As many lost in both arms are a nuisance, no mismatch.
  auto even = draw_blocks(schedule, random, [](const BlockPlace& place, Random& r) {
    return 1 - 0.2 * place.arm + 0.05 * standard_normal(r);
  });
  std::erase_if(even, [seen = 0](const BlockRecord&) mutable { return ++seen % 51 == 0; });
  CHECK_FALSE(analyse_live(plan, schedule, even, now, kQuick).mismatch());
}

TEST_CASE("an arm that is offered more, or has more channels, is found out") {
  const Plan plan = switchback_plan(40, 6);
  const Schedule schedule = make_schedule(plan);
  Random random(8);
  const auto flat = [](const BlockPlace&, Random& r) { return 1 + 0.05 * standard_normal(r); };
  Circumstances now;
  now.finished = true;
  constexpr AnalysisOptions kQuick{.full = true, .redraws = 200, .resamples = 200};
  auto records = draw_blocks(schedule, random, flat);
  for (BlockRecord& r : records) {
    if (r.place.arm == 1) r.values[BlockMetric::offered] *= 0.95;
  }
  CHECK(analyse_live(plan, schedule, records, now, kQuick).mismatch());
  Plan closed = plan;
  closed.closed_loop = true;  // a slower arm is offered less there
  CHECK_FALSE(analyse_live(closed, schedule, records, now, kQuick).mismatch());

  auto channels = draw_blocks(schedule, random, flat);
  for (BlockRecord& r : channels) r.channels += r.place.arm + r.place.block % 3;
  CHECK(analyse_live(plan, schedule, channels, now, kQuick).mismatch());
}

TEST_CASE("balance in A/A experiments is doubted in far fewer than one of a hundred") {
  unsigned alarms = 0;
  for (unsigned s = 0; s < 500; ++s) {
    const Plan plan = switchback_plan(30, s);
    const Schedule schedule = make_schedule(plan);
    Random random(33, s);
    const auto records = draw_blocks(
        schedule, random, [](const BlockPlace&, Random& r) { return standard_normal(r); });
    const PairTable table = pair_up(schedule, records, false);
    for (const BalanceCheck& check : check_balance(table, false)) alarms += check.mismatch();
  }
  CHECK(alarms <= 2);
}
