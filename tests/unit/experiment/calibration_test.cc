// Monte-Carlo calibration: how often the procedures are wrong when the truth is known. Seeded, so
// each figure is a fixed number; the bounds leave 4 standard deviations of the simulation.
#include <catch2/catch.hpp>
#include <cmath>

#include "control/experiment/analysis/effects.h"
#include "control/experiment/analysis/statistics.h"
#include "dataplane/base/numbers/distributions.h"
#include "tests/unit/experiment/runs.h"

using namespace paceline;
using namespace paceline::experiment;

namespace {

bool excludes_zero(const Interval& interval) { return interval.low > 0 || interval.high < 0; }

double share(unsigned part, unsigned whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

// A run's completion time: what both arms share (the arrivals) varies a lot, each arm a little and
// skewed to the right, as tails of completion times are.
double completion(Random& random, double shared) {
  return shared * (1 + exponential(random, 0.08));
}

}  // namespace

TEST_CASE("A/A: the paired t on log ratios errs in 5 % of null experiments") {
  constexpr unsigned kExperiments = 4000;
  constexpr unsigned kPairs = 12;
  Random random(20'240'601);
  unsigned rejected = 0;
  unsigned unpaired_would_see_more = 0;
  for (unsigned e = 0; e < kExperiments; ++e) {
    std::vector<double> a(kPairs), b(kPairs);
    for (unsigned i = 0; i < kPairs; ++i) {
      const double shared = std::exp(0.5 * standard_normal(random));
      a[i] = completion(random, shared);
      b[i] = completion(random, shared);
    }
    const PairedEffect effect = paired_effect(a, b, Compare::ratio, {});
    rejected += excludes_zero(effect.interval);
    CHECK((effect.estimate.p_two_sided() < 0.05) == excludes_zero(effect.interval));
    // Pairing removes the shared part: its sd is 0.5, the paired one about 0.1.
    unpaired_would_see_more += effect.estimate.sd > 0.25;
  }
  INFO("false positives: " << share(rejected, kExperiments));
  CHECK(share(rejected, kExperiments) > 0.03);
  CHECK(share(rejected, kExperiments) < 0.07);
  CHECK(unpaired_would_see_more == 0);
}

TEST_CASE("A/A through the whole analysis: the primary verdict errs in 5 %") {
  constexpr unsigned kExperiments = 2000;
  const AnalysisPlan plan = test::plan_with({"incast"}, 12);
  Random random(77);
  unsigned verdicts = 0;
  for (unsigned e = 0; e < kExperiments; ++e) {
    double shared = 1;
    const auto runs =
        test::runs_of(plan, [&](RunResult& run, std::size_t, std::size_t arm, std::uint32_t) {
          if (arm == 0) shared = std::exp(0.3 * standard_normal(random));
          run.metrics[Metric::collective_efficiency] = 0.7 / completion(random, shared);
        });
    const Analysis analysis = analyse(runs, plan);
    verdicts += analysis.comparisons[0].primary()->verdict != Verdict::no_difference;
  }
  INFO("false verdicts: " << share(verdicts, kExperiments));
  CHECK(share(verdicts, kExperiments) > 0.03);
  CHECK(share(verdicts, kExperiments) < 0.07);
}

TEST_CASE("a true effect of the minimum detectable size is found in 80 %") {
  constexpr unsigned kExperiments = 2000;
  constexpr unsigned kPairs = 12;
  const double sd = 0.085;
  const double truth = minimum_detectable_mean(sd, kPairs, 0.05, 0.8);
  Random random(5);
  unsigned found = 0;
  for (unsigned e = 0; e < kExperiments; ++e) {
    std::vector<double> d(kPairs);
    for (double& value : d) value = truth + sd * standard_normal(random);
    found += t_interval(d, 0.95).interval.low > 0;
  }
  INFO("power: " << share(found, kExperiments));
  CHECK(share(found, kExperiments) == Approx(0.8).margin(0.036));
}

TEST_CASE("the BCa interval of 24 pairs covers the truth about as often as it says", "[slow]") {
  constexpr unsigned kExperiments = 2000;
  Random random(99);
  unsigned covered = 0;
  for (unsigned e = 0; e < kExperiments; ++e) {
    std::vector<double> d(24);
    for (double& value : d) value = 0.1 + 0.085 * standard_normal(random);
    const Interval interval = bca_interval(d, 0.95, 1000, 1, e).interval;
    covered += interval.low <= 0.1 && 0.1 <= interval.high;
  }
  INFO("coverage: " << share(covered, kExperiments));
  CHECK(share(covered, kExperiments) > 0.91);
  CHECK(share(covered, kExperiments) < 0.97);
}

TEST_CASE("on skewed data the BCa interval misses more evenly on both sides than the t", "[slow]") {
  // Exponential with mean 1, n = 24. Both cover less than 95 % (every method does at this skewness
  // and size); the t interval misses almost only to the left of the truth, because it ignores the
  // tail.
  constexpr unsigned kExperiments = 2000;
  struct Misses {
    unsigned below = 0, above = 0;
    void count(const Interval& interval, double truth) {
      below += interval.high < truth;
      above += interval.low > truth;
    }
    double coverage() const { return 1 - share(below + above, kExperiments); }
    double imbalance() const { return share(below, kExperiments) - share(above, kExperiments); }
  };
  Random random(4711);
  Misses bca, t;
  for (unsigned e = 0; e < kExperiments; ++e) {
    std::vector<double> d(24);
    for (double& value : d) value = exponential(random, 1.0);
    bca.count(bca_interval(d, 0.95, 1000, 1, e).interval, 1.0);
    t.count(t_interval(d, 0.95).interval, 1.0);
  }
  INFO("BCa: coverage " << bca.coverage() << ", imbalance " << bca.imbalance()
                        << "; t: " << t.coverage() << ", " << t.imbalance());
  CHECK(bca.coverage() > 0.90);
  CHECK(bca.coverage() < 0.97);
  CHECK(t.imbalance() > 0.03);
  CHECK(bca.imbalance() < 0.75 * t.imbalance());
}

TEST_CASE("flows are no repetitions: pooling them finds effects that are not there") {
  // 12 runs per arm of 50 flows each; flows of a run share its luck (sd 0.1), and vary by 0.3.
  constexpr unsigned kExperiments = 500;
  Random random(31);
  unsigned pooled = 0, by_run = 0;
  for (unsigned e = 0; e < kExperiments; ++e) {
    std::vector<double> flows, runs;
    for (unsigned r = 0; r < 12; ++r) {
      const double luck = 0.1 * standard_normal(random);
      double sum = 0;
      for (unsigned f = 0; f < 50; ++f) {
        flows.push_back(luck + 0.3 * standard_normal(random));
        sum += flows.back();
      }
      runs.push_back(sum / 50);
    }
    pooled += excludes_zero(t_interval(flows, 0.95).interval);
    by_run += excludes_zero(t_interval(runs, 0.95).interval);
  }
  INFO("pooled " << share(pooled, kExperiments) << ", by run " << share(by_run, kExperiments));
  CHECK(share(pooled, kExperiments) > 0.3);
  CHECK(share(by_run, kExperiments) < 0.09);
}

TEST_CASE("A/A guardrails raise a false alarm in about 1 % of experiments on each side") {
  constexpr unsigned kExperiments = 4000;
  const AnalysisPlan plan = test::plan_with({"mixed"}, 12);
  Random random(123);
  unsigned worse = 0;
  for (unsigned e = 0; e < kExperiments; ++e) {
    const auto runs =
        test::runs_of(plan, [&](RunResult& run, std::size_t, std::size_t, std::uint32_t) {
          run.metrics[Metric::goodput_gbps] = 80 + standard_normal(random);
        });
    worse +=
        analyse(runs, plan).comparisons[0].find(Metric::goodput_gbps)->verdict == Verdict::worse;
  }
  INFO("alarms: " << share(worse, kExperiments));
  CHECK(share(worse, kExperiments) > 0.0037);
  CHECK(share(worse, kExperiments) < 0.0163);
}
