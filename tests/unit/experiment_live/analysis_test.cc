#include "control/experiment/live/analysis/analysis.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "control/experiment/live/analysis/covariates.h"
#include "control/experiment/live/analysis/interference.h"
#include "control/experiment/live/analysis/studentised.h"
#include "control/experiment/live/plan/planning.h"
#include "tests/unit/experiment_live/synthetic.h"

using namespace paceline;
using namespace paceline::experiment;
using namespace paceline::experiment::live;
using namespace paceline::experiment::live::test;

namespace {

bool leaves_out_zero(const Interval& i) { return i.low > 0 || i.high < 0; }

Circumstances finished() {
  Circumstances now;
  now.finished = true;
  now.calibrated = true;
  return now;
}

constexpr AnalysisOptions kQuick{.full = true, .redraws = 400, .resamples = 600};

}  // namespace

TEST_CASE("A/A: every interval errs in about 5 % of assignments, the decision in less", "[slow]") {
  constexpr unsigned kPermutations = 1000;
  // One set of blocks, which no arm touches; the assignment is drawn again each time.
  Random random(11);
  std::vector<double> world;
  for (int b = 0; b < 60; ++b) {
    world.push_back(1.2 + 0.3 * std::sin(b / 9.0) + kBlockSd * standard_normal(random));
  }
  unsigned by_bootstrap = 0, by_randomisation = 0, by_p = 0, by_decision = 0;
  for (unsigned s = 0; s < kPermutations; ++s) {
    Plan plan = switchback_plan(30, 1000 + s);
    plan.cuped = s % 2 != 0;
    const Schedule schedule = make_schedule(plan);
    Random noise(5, s);
    const auto records = draw_blocks(
        schedule, noise, [&](const BlockPlace& place, Random&) { return world[place.block]; });
    const LiveAnalysis a = analyse_live(plan, schedule, records, finished(), kQuick);
    by_bootstrap += leaves_out_zero(a.primary().bootstrap);
    by_randomisation += leaves_out_zero(a.primary().randomised);
    by_decision += leaves_out_zero(a.primary().decision);
    by_p += a.primary().p < 0.05;
  }
  INFO("bootstrap " << by_bootstrap << ", randomisation " << by_randomisation << ", decision "
                    << by_decision << " of " << kPermutations);
  CHECK(by_randomisation >= 30);
  CHECK(by_randomisation <= 70);
  CHECK(by_bootstrap >= 30);
  CHECK(by_bootstrap <= 70);
  CHECK(by_decision <= 50);
  CHECK(by_p <= 70);
}

TEST_CASE("the studentised bootstrap: skewed data, few values, equal values", "[slow]") {
  unsigned missed = 0;
  for (unsigned e = 0; e < 1000; ++e) {
    Random random(31, e);
    std::vector<double> d;
    for (int i = 0; i < 20; ++i) d.push_back(exponential(random, 1) - 1);
    const Interval i = studentised_bootstrap(d, 0.05, 400, 1, e).interval;
    missed += i.low > 0 || i.high < 0;
  }
  INFO("missed " << missed << " of 1000");  // a t interval of such data misses 70 or so
  CHECK(missed >= 30);
  CHECK(missed <= 70);
  const BootstrapResult equal =
      studentised_bootstrap(std::vector<double>(5, 0.25), 0.05, 400, 1, 1);
  CHECK(equal.interval.low == 0.25);
  CHECK(equal.p == 2.0 / 32);
  CHECK_THROWS_AS(studentised_bootstrap(std::vector<double>{1, 2}, 0.05, 5, 1, 1),
                  std::invalid_argument);
}

TEST_CASE("power: found as often as planned, within a tenth", "[slow]") {
  constexpr unsigned kExperiments = 600;
  const double sd = 0.085;
  for (const double effect : {0.03, 0.05, 0.08}) {
    const std::uint32_t pairs = pairs_needed(effect, sd, 0.05, 0.8, 2);
    unsigned found = 0;
    for (unsigned e = 0; e < kExperiments; ++e) {
      const Schedule schedule = make_schedule(switchback_plan(pairs, e));
      Random random(3, e);
      const auto records = draw_blocks(schedule, random, [&](const BlockPlace& place, Random& r) {
        return 1 - effect * place.arm + kBlockSd * standard_normal(r);
      });
      const PairTable table = pair_up(schedule, records, false);
      const Contrasts c = contrasts_of(table, BlockMetric::log_slowdown, true);
      found += t_interval(c.means, 0.95).interval.high < 0;
    }
    const double power = found / static_cast<double>(kExperiments);
    INFO("effect " << effect << ", " << pairs << " pairs: power " << power << ", formula "
                   << power_of(effect, sd, pairs, 0.05));
    CHECK(power == Approx(power_of(effect, sd, pairs, 0.05)).epsilon(0.1));
    CHECK(power_of(effect, sd, pairs, 0.05) == Approx(0.8).margin(0.03));
  }
}

TEST_CASE("planning: pairs that an effect needs") {
  // Normal approximation: (1.96 + .8416)^2 (sd / effect)^2, and two or so more for the t.
  CHECK(pairs_needed(log_effect(0.02), 0.085, 0.05, 0.8, 2) == Approx(146).margin(3));
  CHECK(pairs_needed(log_effect(0.05), 0.085, 0.05, 0.8, 2) == Approx(25).margin(2));
  CHECK(pairs_needed(log_effect(0.20), 0.085, 0.05, 0.8, 12) == 12);  // by policy
  CHECK(pairs_needed(0.1, 0, 0.05, 0.8, 12) == 12);
  CHECK_THROWS_AS(pairs_needed(0, 0.1, 0.05, 0.8, 12), std::invalid_argument);
  CHECK(power_of(0, 0.1, 20, 0.05) == Approx(0.05));
}

TEST_CASE("drift: a load that grows throughout sides with no arm of a switchback") {
  constexpr double kEffect = -0.05;
  constexpr double kRise = 0.6;  // over the experiment: twelve times the effect
  double switchback = 0;
  double before_after = 0;
  constexpr unsigned kRuns = 40;
  unsigned covered = 0;
  for (unsigned s = 0; s < kRuns; ++s) {
    const Plan plan = switchback_plan(40, s);
    const Schedule schedule = make_schedule(plan);
    Random random(9, s);
    const auto slowdown = [&](std::uint32_t block, bool candidate, Random& r) {
      return 1 + kRise * block / 80.0 + (candidate ? kEffect : 0) + 0.02 * standard_normal(r);
    };
    const auto records = draw_blocks(schedule, random, [&](const BlockPlace& place, Random& r) {
      return slowdown(place.block, place.arm == 1, r);
    });
    const LiveAnalysis a = analyse_live(plan, schedule, records, finished(), kQuick);
    switchback += a.primary().mean / kRuns;
    covered += a.primary().decision.low < kEffect && a.primary().decision.high > kEffect;
    // What one would do without a design: the champion first, then the candidate.
    double first = 0, second = 0;
    for (std::uint32_t b = 0; b < 80; ++b) {
      (b < 40 ? first : second) += slowdown(b, b >= 40, random) / 40;
    }
    before_after += (second - first) / kRuns;
  }
  INFO("switchback " << switchback << ", before and after " << before_after);
  CHECK(switchback == Approx(kEffect).margin(0.002));
  CHECK(covered >= kRuns - 2);
  CHECK(before_after > 0.2);  // an improvement of 5 % reported as a loss of more than 20 %
}

TEST_CASE("covariates: what the load explains is taken out, and nothing else") {
  constexpr double kEffect = -0.04;
  double plain_width = 0, adjusted_width = 0, mean = 0;
  constexpr unsigned kRuns = 50;
  for (unsigned s = 0; s < kRuns; ++s) {
    Plan plan = switchback_plan(30, s);
    const Schedule schedule = make_schedule(plan);
    Random random(17, s);
    std::vector<BlockRecord> records;
    for (std::uint32_t b = 0; b < schedule.blocks(); ++b) {
      BlockRecord r = record_of(schedule, b, 0);
      const double log_load = 0.1 * standard_normal(random);
      r.values[BlockMetric::offered] = 6e10 * std::exp(log_load);
      r.values[BlockMetric::log_slowdown] =
          1 + kEffect * r.place.arm + 0.8 * log_load + 0.02 * standard_normal(random);
      records.push_back(r);
    }
    const LiveAnalysis with = analyse_live(plan, schedule, records, finished(), kQuick);
    plan.cuped = false;
    const LiveAnalysis without = analyse_live(plan, schedule, records, finished(), kQuick);
    adjusted_width += with.primary().decision.high - with.primary().decision.low;
    plain_width += without.primary().decision.high - without.primary().decision.low;
    mean += with.primary().mean / kRuns;
    CHECK(with.explained > 0.7);
    CHECK(without.explained == 0);
  }
  CHECK(mean == Approx(kEffect).margin(0.004));
  CHECK(adjusted_width < 0.4 * plain_width);
}

TEST_CASE("covariates that are useless, equal or too many leave the differences alone") {
  const std::vector<double> d{1, 2, 3, 4};
  CHECK(adjust(d, {}).values == d);
  CHECK(adjust(d, {{1}, {2}, {3}, {4}}).values == d);  // four pairs are too few
  std::vector<double> more;
  std::vector<std::vector<double>> same;
  Random random(1);
  for (int i = 0; i < 40; ++i) {
    const double x = standard_normal(random);
    more.push_back(2 * x);
    same.push_back({x, x, 5});
  }
  const Adjusted out = adjust(more, same);
  CHECK(out.theta[0] + out.theta[1] == Approx(2));
  CHECK(out.theta[2] == 0);
  CHECK(out.explained == Approx(1));
}

TEST_CASE("clusters: what arms do to each other is told apart from what they do") {
  // Clusters whose champions profit from candidates beside them: -.2 of what a candidate gains.
  const Plan plan = cluster_plan(60, 4, 3);
  const Schedule schedule = make_schedule(plan);
  Random random(2);
  const auto outcome = [&](const BlockPlace& place, Random& r) {
    std::uint32_t candidates = 0;
    for (std::uint32_t c = 0; c < 4; ++c) candidates += schedule.arm(place.block, c);
    const double share = candidates / 4.0;
    return 1 - 0.10 * place.arm - 0.2 * share + 0.01 * standard_normal(r);
  };
  const auto records = draw_blocks(schedule, random, outcome);
  const LiveAnalysis a = analyse_live(plan, schedule, records, finished(), kQuick);
  const Interference& i = a.interference;
  REQUIRE(i.known);
  CHECK(i.whole_pairs == 15);
  CHECK(i.crossed_pairs == 45);
  CHECK(i.naive == Approx(-0.10).margin(0.01));      // candidates beside champions
  CHECK(i.total == Approx(-0.30).margin(0.01));      // everywhere
  CHECK(i.spillover == Approx(-0.10).margin(0.01));  // half of .2
  CHECK(i.interferes());
  // And none is seen where there is none.
  Random other(3);
  const auto apart = draw_blocks(schedule, other, [](const BlockPlace& place, Random& r) {
    return 1 - 0.10 * place.arm + 0.01 * standard_normal(r);
  });
  const LiveAnalysis b = analyse_live(plan, schedule, apart, finished(), kQuick);
  CHECK_FALSE(b.interference.interferes());
  CHECK(b.interference.spillover == Approx(0).margin(0.01));
}

TEST_CASE("carry-over of known order is estimated without bias; plain pairs notice it", "[slow]") {
  // Half of a block's effect is what the block before had.
  constexpr double kEffect = -0.1;
  const auto truth = [](const Schedule& schedule, const BlockPlace& place, Random& r) {
    const std::uint32_t before = place.block == 0 ? 0 : place.block - 1;
    return 1 + kEffect * (schedule.arm(place.block, 0) + schedule.arm(before, 0)) / 2.0 +
           0.02 * standard_normal(r);
  };
  double modelled = 0, plain = 0;
  unsigned noticed = 0, covered = 0;
  constexpr unsigned kRuns = 30;
  for (unsigned s = 0; s < kRuns; ++s) {
    Plan plan = switchback_plan(60, s);
    Random random(21, s);
    const Schedule pairs = make_schedule(plan);
    const auto a = analyse_live(
        plan, pairs,
        draw_blocks(pairs, random,
                    [&](const BlockPlace& p, Random& r) { return truth(pairs, p, r); }),
        finished(), kQuick);
    plain += a.primary().mean / kRuns;
    noticed += a.carryover.p < 0.01;
    plan.carryover_blocks = 1;
    const Schedule kept = make_schedule(plan);
    const auto b =
        analyse_live(plan, kept,
                     draw_blocks(kept, random,
                                 [&](const BlockPlace& p, Random& r) { return truth(kept, p, r); }),
                     finished(), kQuick);
    modelled += b.primary().mean / kRuns;
    covered += b.primary().decision.low < kEffect && b.primary().decision.high > kEffect;
  }
  INFO("pairs " << plain << ", modelled " << modelled << ", noticed " << noticed);
  CHECK(modelled == Approx(kEffect).epsilon(0.05));
  CHECK(plain > 0.6 * kEffect);  // a good part of the effect is lost
  CHECK(noticed == kRuns);
  CHECK(covered >= 26);
}
