// The rule alone: what speaks against shipping, and whether going on can answer it.
#include <catch2/catch.hpp>

#include "control/experiment/live/analysis/analysis.h"
#include "tests/unit/experiment_live/synthetic.h"

namespace paceline::experiment::live {

namespace {

// A candidate that is shown to be better.
LiveAnalysis better_than(const Plan& plan) {
  LiveAnalysis out;
  MetricResult primary;
  primary.metric = plan.primary;
  primary.n = plan.pairs_min;
  const bool lower = info(plan.primary).better == Better::lower;
  primary.mean = lower ? -0.2 : 0.2;
  primary.decision = lower ? Interval{-0.3, -0.1} : Interval{0.1, 0.3};
  out.metrics.push_back(primary);
  return out;
}

Verdict verdict_of(const Plan& plan, const Circumstances& circumstances, LiveAnalysis analysis) {
  decide(plan, circumstances, analysis);
  return analysis.verdict;
}

}  // namespace

TEST_CASE("an experiment goes on while more pairs may answer all that speaks against it") {
  const Plan plan = test::switchback_plan(30);
  Circumstances now;
  now.calibrated = true;
  const LiveAnalysis better = better_than(plan);
  CHECK(verdict_of(plan, now, better) == Verdict::ship);

  LiveAnalysis at_load = better;
  StratumResult high;
  high.from = 0.7;
  high.n = 1;
  at_load.strata.push_back(high);
  CHECK(verdict_of(plan, now, at_load) == Verdict::running);
  Circumstances finished = now;
  finished.finished = true;
  CHECK(verdict_of(plan, finished, at_load) == Verdict::inconclusive);

  // A carry-over is there with more pairs, too.
  LiveAnalysis carried = at_load;
  carried.carryover.p = 1e-4;
  CHECK(verdict_of(plan, now, carried) == Verdict::inconclusive);
  Circumstances uncalibrated;
  CHECK(verdict_of(plan, uncalibrated, at_load) == Verdict::inconclusive);
}

TEST_CASE("verdicts are read as they are written") {
  for (int i = 0; i <= static_cast<int>(Verdict::miscalibrated); ++i) {
    const auto verdict = static_cast<Verdict>(i);
    CHECK(verdict_named(to_text(verdict)) == verdict);
  }
  CHECK_FALSE(verdict_named("shipped").has_value());
}

}  // namespace paceline::experiment::live
