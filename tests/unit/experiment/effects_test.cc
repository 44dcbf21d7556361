#include "control/experiment/analysis/effects.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>

#include "dataplane/base/numbers/distributions.h"
#include "tests/unit/experiment/runs.h"

using namespace paceline;
using namespace paceline::experiment;
using test::plan_with;
using test::run_of;
using test::runs_of;

namespace {

constexpr Metric kEfficiency = Metric::collective_efficiency;

// A small deterministic wiggle, different per repetition and arm.
double wiggle(std::uint32_t repetition, std::size_t arm) {
  return 0.01 * std::sin(1.7 * repetition + 2.9 * static_cast<double>(arm));
}

const MetricEffect& effect_of(const Analysis& analysis, Metric metric, std::size_t scenario = 0) {
  const MetricEffect* effect = analysis.comparisons.at(scenario).find(metric);
  REQUIRE(effect != nullptr);
  return *effect;
}

}  // namespace

TEST_CASE("direction: more efficiency is better, more slowdown worse, more CNPs are just more") {
  const AnalysisPlan plan = plan_with({"incast"}, 12);
  const auto runs = runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
    run.metrics[kEfficiency] = (a == 0 ? 0.5 : 0.6) + wiggle(r, a);
    run.metrics[Metric::slowdown_mean] = (a == 0 ? 2 : 3) + wiggle(r, a);
    run.metrics[Metric::cnps] = (a == 0 ? 1000 : 2000) + 100 * wiggle(r, a);
    run.metrics[Metric::jain_fairness] = (a == 0 ? 0.9 : 0.8) + wiggle(r, a);
    run.metrics[Metric::limited_grant] = a == 0 ? 0 : 0.9;
  });
  const Analysis analysis = analyse(runs, plan);
  CHECK(effect_of(analysis, kEfficiency).verdict == Verdict::better);
  CHECK(effect_of(analysis, kEfficiency).paired.effect == Approx(0.2).margin(0.01));
  CHECK(effect_of(analysis, kEfficiency).paired.scale == Compare::ratio);
  CHECK(effect_of(analysis, Metric::slowdown_mean).verdict == Verdict::worse);
  CHECK(effect_of(analysis, Metric::cnps).verdict == Verdict::higher);
  CHECK(effect_of(analysis, Metric::cnps).paired.scale == Compare::difference);
  CHECK(effect_of(analysis, Metric::jain_fairness).verdict == Verdict::worse);
  CHECK(effect_of(analysis, Metric::limited_grant).verdict == Verdict::described);
  CHECK(std::isnan(effect_of(analysis, Metric::limited_grant).p));
  CHECK(analysis.comparisons[0].find(Metric::fct_p50_us) == nullptr);
}

TEST_CASE("runs are paired by repetition, whatever their order") {
  const AnalysisPlan plan = plan_with({"incast", "mixed"}, 12);
  auto runs = runs_of(plan, [](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
    // The shared part is large: unpaired, the 2 % would drown.
    run.metrics[kEfficiency] =
        (0.2 + 0.05 * r) * (a == 0 ? 1.0 : 1.02) * (s == 0 ? 1 : 0.9) * (1 + 0.1 * wiggle(r, a));
  });
  const Analysis ordered = analyse(runs, plan);
  CHECK(effect_of(ordered, kEfficiency).verdict == Verdict::better);
  CHECK(effect_of(ordered, kEfficiency).paired.effect == Approx(0.02).margin(0.001));
  Random random(4);
  for (std::size_t i = runs.size(); i > 1; --i) std::swap(runs[i - 1], runs[random.below(i)]);
  const Analysis shuffled = analyse(runs, plan);
  for (std::size_t s = 0; s < 2; ++s) {
    CHECK(effect_of(shuffled, kEfficiency, s).paired.interval.low ==
          effect_of(ordered, kEfficiency, s).paired.interval.low);
    CHECK(effect_of(shuffled, kEfficiency, s).p_adjusted ==
          effect_of(ordered, kEfficiency, s).p_adjusted);
  }
}

TEST_CASE("a scenario has one primary metric; what else could be one is exploratory there") {
  const AnalysisPlan plan = plan_with({"collective", "open loop"}, 3);
  const auto runs =
      runs_of(plan, [](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
        if (s == 0) run.metrics[kEfficiency] = 0.5 + wiggle(r, a);
        run.metrics[Metric::slowdown_small_p99] = 3 + wiggle(r, a);
      });
  const Analysis analysis = analyse(runs, plan);
  CHECK(analysis.comparisons[0].primary()->metric == kEfficiency);
  CHECK(effect_of(analysis, Metric::slowdown_small_p99, 0).role == Role::exploratory);
  CHECK(analysis.comparisons[1].primary()->metric == Metric::slowdown_small_p99);
  CHECK(analysis.primary_tests == 2);
  CHECK(analysis.exploratory_tests == 1);
}

TEST_CASE("primary verdicts are corrected over the scenarios") {
  // One scenario with p between .0125 and .05 (unchanged by correction alone, not among four).
  const auto fill = [](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
    const double noise[] = {0.05, -0.04, 0.02, -0.03, 0.04, -0.05, 0.03, -0.01};
    const double shift = s == 0 ? 0.034 : 0.0;
    run.metrics[kEfficiency] = 0.5 * (1 + (a == 1 ? shift + noise[r % 8] : 0));
  };
  const AnalysisPlan alone = plan_with({"a"}, 8);
  const MetricEffect single = effect_of(analyse(runs_of(alone, fill), alone), kEfficiency);
  INFO("p " << single.p);
  CHECK(single.p > 0.0125);
  CHECK(single.p < 0.05);
  CHECK(single.verdict == Verdict::better);
  const AnalysisPlan four = plan_with({"a", "b", "c", "d"}, 8);
  const MetricEffect among = effect_of(analyse(runs_of(four, fill), four), kEfficiency);
  CHECK(among.p == single.p);
  CHECK(among.p_adjusted == Approx(4 * single.p));
  CHECK(among.verdict == Verdict::no_difference);
}

TEST_CASE("guardrails are tested one-sided at 1 %") {
  const AnalysisPlan plan = plan_with({"a"}, 8);
  const auto verdict_at = [&](double shift) {
    const auto runs =
        runs_of(plan, [&](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
          const double noise[] = {0.05, -0.04, 0.02, -0.03, 0.04, -0.05, 0.03, -0.01};
          run.metrics[Metric::goodput_gbps] = 80 * (a == 1 ? 1 + shift + noise[r % 8] : 1);
        });
    return effect_of(analyse(runs, plan), Metric::goodput_gbps);
  };
  const MetricEffect mild = verdict_at(-0.031);  // two-sided p about .04
  CHECK(mild.p == Approx(mild.paired.estimate.p_two_sided() / 2));
  CHECK(mild.p > kGuardrailAlpha);
  CHECK(mild.verdict == Verdict::no_difference);
  const MetricEffect grave = verdict_at(-0.06);
  CHECK(grave.p < kGuardrailAlpha);
  CHECK(grave.verdict == Verdict::worse);
}

TEST_CASE("zero drops in both arms is identical, and is no test") {
  const AnalysisPlan plan = plan_with({"a"}, 12);
  const auto runs = runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
    run.metrics[Metric::drops] = 0;
    run.metrics[Metric::pfc_pause_us] = a == 0 ? 100 + r : 0;
    run.metrics[Metric::queue_max_bytes] = a == 0 ? 1e6 + 1e4 * wiggle(r, 0) : 0;
  });
  const Analysis analysis = analyse(runs, plan);
  CHECK(effect_of(analysis, Metric::drops).verdict == Verdict::identical);
  CHECK(std::isnan(effect_of(analysis, Metric::drops).p));
  CHECK(effect_of(analysis, Metric::pfc_pause_us).verdict == Verdict::better);
  CHECK(effect_of(analysis, Metric::queue_max_bytes).paired.fell_back);
  CHECK(effect_of(analysis, Metric::queue_max_bytes).verdict == Verdict::better);
  CHECK(analysis.exploratory_tests == 1);
}

TEST_CASE("an arm that stalls does not look faster") {
  // In the repetitions it survives it is twice as good; in the others it does not finish.
  const AnalysisPlan plan = plan_with({"a"}, 12);
  const auto runs_with_stalls = [&](std::uint32_t stalls, std::size_t stalling_arm) {
    return runs_of(plan, [=](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
      run.metrics[kEfficiency] = (a == stalling_arm ? 0.8 : 0.4) + wiggle(r, a);
      run.metrics[Metric::drops] = 3 + r + (a == 0 ? 0 : 1);
      if (a == stalling_arm && r < stalls) test::stop_early(run, "no progress");
    });
  };
  const MetricEffect none = effect_of(analyse(runs_with_stalls(0, 1), plan), kEfficiency);
  CHECK(none.verdict == Verdict::better);
  CHECK_FALSE(none.by_completion);

  const Analysis analysis = analyse(runs_with_stalls(6, 1), plan);
  const MetricEffect half = effect_of(analysis, kEfficiency);
  CHECK(half.by_completion);
  CHECK(half.censored_arm == 6);
  CHECK(half.pairs == 6);
  CHECK(half.p == 1);
  CHECK(half.verdict == Verdict::no_difference);
  CHECK(half.paired.estimate.p_two_sided() < 1e-6);  // what the survivors alone would claim
  REQUIRE(analysis.notes.size() == 1);
  CHECK(analysis.notes[0].find("a, cadence: 6 of 12 runs did not finish (repetition 0, 1, 2, 3, 4, "
                               "5)") == 0);
  CHECK(analysis.notes[0].find("20 of 32 messages completed: no progress") != std::string::npos);
  // Drops have their meaning without completion; the censored pairs are left out and counted.
  CHECK_FALSE(effect_of(analysis, Metric::drops).by_completion);
  CHECK(effect_of(analysis, Metric::drops).pairs == 6);

  CHECK(effect_of(analyse(runs_with_stalls(11, 1), plan), kEfficiency).verdict == Verdict::worse);
  CHECK(effect_of(analyse(runs_with_stalls(12, 1), plan), kEfficiency).verdict == Verdict::worse);
  // The same for the baseline, which is then worse: the arm is better although no pair is complete.
  const MetricEffect all = effect_of(analyse(runs_with_stalls(12, 0), plan), kEfficiency);
  CHECK(all.pairs == 0);
  CHECK(all.censored_baseline == 12);
  CHECK(all.verdict == Verdict::better);
  CHECK(all.p == Approx(2.0 / 4096));
}

TEST_CASE("for metrics where lower is better, finishing faster wins the sign test") {
  const AnalysisPlan plan = plan_with({"a"}, 12);
  const auto runs = runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
    run.metrics[Metric::fct_mean_us] = (a == 0 ? 300 : 200) + wiggle(r, a);
    if (a == 0 && r == 0) test::stop_early(run, "limit");
  });
  const MetricEffect effect = effect_of(analyse(runs, plan), Metric::fct_mean_us);
  CHECK(effect.by_completion);
  CHECK(effect.p == Approx(2.0 / 4096));
  CHECK(effect.verdict == Verdict::better);
}

TEST_CASE("failed and missing runs are left out and named, and prove nothing") {
  const AnalysisPlan plan = plan_with({"a", "b"}, 12);
  auto runs = runs_of(plan, [](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
    run.metrics[kEfficiency] = 0.5 + wiggle(r, a);
    if (s == 0 && a == 1 && r == 4) {
      run.status = RunStatus::failed;
      run.reason = "bytes not conserved";
    }
  });
  runs.resize(runs.size() - 3);  // interrupted: b lost one pair, a one arm of repetition 11
  const Analysis analysis = analyse(runs, plan);
  const Comparison& a = analysis.comparisons[0];
  CHECK(a.arm_runs.failed == 1);
  CHECK(a.arm_runs.missing == 1);
  CHECK(a.baseline_runs.ok == 12);
  CHECK(effect_of(analysis, kEfficiency, 0).pairs == 10);
  CHECK(effect_of(analysis, kEfficiency, 1).pairs == 11);
  CHECK_FALSE(effect_of(analysis, kEfficiency, 0).by_completion);
  REQUIRE(analysis.notes.size() == 2);
  CHECK(analysis.notes[0].find("a, cadence: 1 of 12 runs failed (repetition 4)") == 0);
  CHECK(analysis.notes[0].find("bytes not conserved") != std::string::npos);
  CHECK(analysis.notes[1].find("3 of 48 runs were not done") == 0);
}

TEST_CASE("messages outstanding at the end of a stated duration are told") {
  const AnalysisPlan plan = plan_with({"a"}, 2);
  const auto runs = runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
    run.metrics[kEfficiency] = 0.5 + wiggle(r, a);
    run.messages_completed = a == 0 ? 32 : 30;
  });
  const Analysis analysis = analyse(runs, plan);
  REQUIRE(analysis.notes.size() == 1);
  CHECK(analysis.notes[0].find("dcqcn 0 of 64, cadence 4 of 64") != std::string::npos);
}

TEST_CASE("one pair gives means, no interval and no verdict; no run gives nothing") {
  const AnalysisPlan plan = plan_with({"a"}, 1);
  const auto runs = runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t) {
    run.metrics[kEfficiency] = a == 0 ? 0.4 : 0.8;
  });
  const MetricEffect effect = effect_of(analyse(runs, plan), kEfficiency);
  CHECK(effect.paired.effect == Approx(1.0));
  CHECK(std::isnan(effect.paired.interval.low));
  CHECK(effect.verdict == Verdict::too_few);
  const Analysis empty = analyse({}, plan);
  CHECK(empty.comparisons.at(0).effects.empty());
  CHECK(empty.comparisons.at(0).primary() == nullptr);
  CHECK(empty.notes.size() == 1);
}

TEST_CASE("the summary is the geometric mean over scenarios, with repetitions as the datum") {
  AnalysisPlan plan = plan_with({"a", "b", "other"}, 12);
  plan.summaries = {{"both", kEfficiency, {"a", "b"}}};
  // Ratios 1.2 and 1.8 times a factor that is opposite in the two scenarios: it cancels.
  const auto runs =
      runs_of(plan, [](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
        const double swing = std::exp(10 * wiggle(r, 1) * (s == 0 ? 1 : -1));
        const double ratio = s == 0 ? 1.2 : 1.8;
        run.metrics[kEfficiency] = 0.3 * (a == 0 ? 1 : ratio * swing);
      });
  const Analysis analysis = analyse(runs, plan);
  REQUIRE(analysis.summaries.size() == 1);
  const Summary& summary = analysis.summaries[0];
  CHECK(summary.pairs == 12);
  CHECK(1 + summary.paired.effect == Approx(std::sqrt(1.2 * 1.8)).epsilon(1e-6));
  CHECK(summary.paired.interval.high - summary.paired.interval.low < 1e-6);
  CHECK(summary.verdict == Verdict::better);
  const PairedEffect& alone = effect_of(analysis, kEfficiency, 0).paired;
  CHECK(alone.interval.high - alone.interval.low > 0.05);
}

TEST_CASE("a summary counts an arm that did not finish in one of its scenarios as lost") {
  AnalysisPlan plan = plan_with({"a", "b"}, 12);
  plan.summaries = {{"both", kEfficiency, {"a", "b"}}};
  const auto runs =
      runs_of(plan, [](RunResult& run, std::size_t s, std::size_t a, std::uint32_t r) {
        run.metrics[kEfficiency] = (a == 0 ? 0.4 : 0.8) + wiggle(r, a);
        if (s == 1 && a == 1 && r < 6) test::stop_early(run, "limit");
      });
  const Summary summary = analyse(runs, plan).summaries.at(0);
  CHECK(summary.pairs == 6);
  CHECK(summary.verdict == Verdict::no_difference);
}

TEST_CASE("from 20 repetitions on the bootstrap speaks, reproducibly from the seed") {
  AnalysisPlan plan = plan_with({"a"}, 24);
  plan.resamples = 1000;
  const auto runs = runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
    run.metrics[kEfficiency] = 0.5 + wiggle(r, a);
  });
  const MetricEffect once = effect_of(analyse(runs, plan), kEfficiency);
  const MetricEffect twice = effect_of(analyse(runs, plan), kEfficiency);
  CHECK(once.paired.estimate.method == Method::bca_bootstrap);
  CHECK(once.paired.interval.low == twice.paired.interval.low);
  plan.seed = 8;
  CHECK(effect_of(analyse(runs, plan), kEfficiency).paired.interval.low !=
        once.paired.interval.low);
}

TEST_CASE("three arms: each is compared with the baseline") {
  AnalysisPlan plan = plan_with({"a"}, 4);
  plan.arms = {"base", "good", "bad"};
  const auto runs = runs_of(plan, [](RunResult& run, std::size_t, std::size_t a, std::uint32_t r) {
    const double level[] = {0.5, 0.8, 0.2};
    run.metrics[kEfficiency] = level[a] + wiggle(r, a);
  });
  const Analysis analysis = analyse(runs, plan);
  REQUIRE(analysis.comparisons.size() == 2);
  CHECK(analysis.comparisons[0].arm == "good");
  CHECK(effect_of(analysis, kEfficiency, 0).verdict == Verdict::better);
  CHECK(effect_of(analysis, kEfficiency, 1).verdict == Verdict::worse);
  CHECK(analysis.primary_tests == 2);
}

TEST_CASE("runs that have no place in the plan are refused") {
  const AnalysisPlan plan = plan_with({"a"}, 2);
  const auto refused = [&](const std::function<void(RunResult&)>& spoil) {
    std::vector<RunResult> runs{run_of(plan, 0, 0, 0), run_of(plan, 0, 1, 0)};
    spoil(runs[1]);
    CHECK_THROWS_AS(analyse(runs, plan), std::invalid_argument);
  };
  refused([](RunResult& run) { run.scenario = "no such scenario"; });
  refused([](RunResult& run) { run.arm = "no such arm"; });
  refused([](RunResult& run) { run.repetition = 2; });
  refused([](RunResult& run) { run.arm = "dcqcn"; });
  refused(
      [](RunResult& run) { run.metrics[Metric::drops] = std::numeric_limits<double>::infinity(); });
  AnalysisPlan bad = plan;
  bad.summaries = {{"x", kEfficiency, {"z"}}};
  CHECK_THROWS_AS(analyse({}, bad), std::invalid_argument);
}

TEST_CASE("the plan of an experiment summarises its collectives") {
  config::Experiment experiment;
  experiment.name = "first";
  experiment.seed = 3;
  experiment.repetitions = 5;
  experiment.confidence = 0.9;
  experiment.arms.resize(2);
  experiment.arms[0].name = "x";
  experiment.arms[1].name = "y";
  for (const char* kind : {"incast", "open_loop", "all_to_all"}) {
    config::Scenario scenario;
    scenario.name = std::string("s-") + kind;
    scenario.workload.kind = kind;
    experiment.scenarios.push_back(scenario);
  }
  const AnalysisPlan plan = plan_of(experiment);
  CHECK(plan.arms == std::vector<std::string>{"x", "y"});
  CHECK(plan.scenarios.size() == 3);
  CHECK(plan.confidence == 0.9);
  REQUIRE(plan.summaries.size() == 1);
  CHECK(plan.summaries[0].scenarios == std::vector<std::string>{"s-incast", "s-all_to_all"});
}
