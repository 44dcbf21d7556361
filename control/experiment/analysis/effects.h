// From the runs of an experiment to its answers: every metric of every scenario, baseline against
// every other arm, and summaries across scenarios. Pure: the same runs in any order give the same
// analysis.
//
// Rules (docs/experiments.md says why):
//  - A repetition counts if both arms have a value. Repetitions left out are reported by number.
//  - Metrics are rounded to the digits of the results file before anything is computed, so that the
//    analysis of a file read back is the analysis printed.
//  - A run that did not finish is censored. If a metric needs completion, the arm that did not
//    finish loses such a pair, and the verdict then comes from the exact sign test over all pairs
//    (an arm that stalls must not look faster because its slowest messages are missing).
//  - Verdicts: primary metrics after Holm's correction over the scenarios and arms; guardrails
//    one-sided at 1 %; everything else after Benjamini-Hochberg over the experiment, exploratory.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/metrics.h"
#include "control/experiment/run_result.h"
#include "dataplane/config/scenario.h"

namespace paceline::experiment {

inline constexpr double kGuardrailAlpha = 0.01;  // one-sided

// Geometric mean of the ratios of one metric over several scenarios, as one number with an
// interval: the log ratios of a repetition are averaged over the scenarios first, then over
// repetitions.
struct SummarySpec {
  std::string label;
  Metric metric = Metric::collective_efficiency;
  std::vector<std::string> scenarios;
};

struct AnalysisPlan {
  std::string name = "experiment";
  std::uint64_t seed = 1;
  double confidence = 0.95;
  std::uint32_t repetitions = 12;
  std::uint32_t resamples = 10'000;
  std::vector<std::string> scenarios;  // in printing order
  std::vector<std::string> arms;       // arms[0] is the baseline
  std::vector<SummarySpec> summaries;
};

// Scenario and arm names, seed, repetitions and confidence of the experiment, with one summary: the
// collective efficiency over its scenarios that are collectives (none if fewer than two are).
AnalysisPlan plan_of(const config::Experiment& experiment);

enum class Verdict : std::uint8_t {
  better,
  worse,
  higher,  // of metrics that are neither good nor bad
  lower,
  no_difference,  // none shown: not the same as none
  identical,      // every pair equal
  too_few,        // fewer than two complete pairs and no decision by completion either
  described,      // not tested
};
std::string_view to_text(Verdict verdict);  // "better", "worse", "no difference shown", ...

struct MetricEffect {
  Metric metric{};
  Role role{};                          // in this scenario
  PairedEffect paired;                  // over the pairs in which both runs are ok
  std::uint32_t pairs = 0;              // complete pairs
  std::uint32_t censored_arm = 0;       // pairs lost because only the arm did not finish
  std::uint32_t censored_baseline = 0;  // ... only the baseline
  std::uint32_t censored_both = 0;
  bool by_completion = false;      // p is that of the sign test over complete and censored pairs
  double p = kUndefined;           // two-sided; guardrails: one-sided in the direction seen
  double p_adjusted = kUndefined;  // what the verdict is based on
  Verdict verdict = Verdict::described;
};

struct RunCounts {
  std::uint32_t ok = 0, unfinished = 0, failed = 0, missing = 0;
  std::uint64_t messages_started = 0, messages_completed = 0;
};

struct Comparison {  // one scenario, one arm against the baseline
  std::string scenario;
  std::string arm;
  RunCounts baseline_runs;
  RunCounts arm_runs;
  std::vector<MetricEffect> effects;  // metrics that apply, in table order
  const MetricEffect* find(Metric metric) const;
  const MetricEffect* primary() const;  // nullptr if none applies
};

struct Summary {
  SummarySpec spec;
  std::string arm;
  std::uint32_t pairs = 0;  // repetitions complete in every scenario
  PairedEffect paired;      // effect = geometric mean ratio - 1
  double p = kUndefined;
  Verdict verdict = Verdict::too_few;
};

struct Analysis {
  AnalysisPlan plan;
  std::vector<Comparison> comparisons;  // scenario by scenario, arm by arm
  std::vector<Summary> summaries;
  std::vector<std::string> notes;   // unfinished, failed and missing runs, each with its reason
  std::uint32_t primary_tests = 0;  // sizes of the two families
  std::uint32_t exploratory_tests = 0;
};

// Throws std::invalid_argument for a run of an unknown scenario or arm, a repetition out of range,
// a duplicate, or a summary of an unknown scenario.
Analysis analyse(std::span<const RunResult> runs, const AnalysisPlan& plan);

}  // namespace paceline::experiment
