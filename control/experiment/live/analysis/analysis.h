// What the blocks of an experiment show, and what follows from it. Pure: the same plan, schedule
// and records give the same analysis.
//
// An effect has three intervals: the confidence sequence (valid however often you look), the
// studentised bootstrap over pairs, and the inverted randomisation test (both for a fixed number of
// pairs). A decision needs all three: it uses their hull, which is the widest at either end.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/live/analysis/confidence_sequence.h"
#include "control/experiment/live/analysis/pairs.h"
#include "control/experiment/live/analysis/randomisation.h"
#include "control/experiment/live/plan/plan.h"

namespace paceline::experiment::live {

enum class MetricRole : std::uint8_t { primary, guardrail, exploratory, placebo };
std::string_view to_text(MetricRole role);

// Means and intervals are on the scale of the analysis (contrast in block_metrics.h); effect_of
// turns them into what people read.
struct MetricResult {
  BlockMetric metric = BlockMetric::log_slowdown;
  MetricRole role = MetricRole::primary;
  std::uint32_t n = 0;
  std::uint32_t missing = 0;
  double champion = kUndefined;
  double candidate = kUndefined;
  double mean = kUndefined;
  double sd = kUndefined;
  Interval sequence;
  Interval bootstrap;
  Interval randomised;
  Interval decision;               // the hull
  double p = kUndefined;           // the larger of bootstrap and randomisation
  double p_adjusted = kUndefined;  // exploratory: Benjamini-Hochberg
  double limit = kUndefined;       // guardrail: contrast beyond which it is breached
  Interval guard;                  // guardrail: one-sided bounds at soft_alpha
  bool breached = false;           // shown to be beyond the limit
  bool cleared = false;            // shown to be within it
};

// Result for the pairs within a range of load.
struct StratumResult {
  double from = 0;
  double to = 1;
  std::uint32_t n = 0;
  double mean = kUndefined;
  Interval sequence;
};

// Designs with clusters that have whole pairs, too. Contrasts of the primary metric; Welch
// intervals.
struct Interference {
  bool known = false;
  std::uint32_t crossed_pairs = 0;
  std::uint32_t whole_pairs = 0;
  double naive = kUndefined;  // candidate against champion, side by side
  Interval naive_interval;
  double total = kUndefined;  // everywhere against nowhere: what shipping it does
  Interval total_interval;
  double spillover = kUndefined;  // on champion clusters beside candidates, against champion alone
  Interval spillover_interval;
  double gap = kUndefined;  // naive - total
  Interval gap_interval;
  bool interferes() const { return gap_interval.low > 0 || gap_interval.high < 0; }
};

// Is a block right after a change of arms like the others? A difference says that the wash-out is
// too short, or that blocks.carryover is needed.
struct CarryoverCheck {
  std::uint32_t after_change = 0;
  std::uint32_t after_same = 0;
  double difference = kUndefined;  // of contrasts: after a change less after the same arm
  double p = kUndefined;
};

enum class Verdict : std::uint8_t {
  running,        // no rule to stop applies yet
  ship,           // better, and nothing speaks against it
  harmful,        // shown to be worse, or beyond a guard
  no_difference,  // shown to be within the minimum effect
  inconclusive,   // all pairs used, or stopped, and nothing shown
  invalid,        // the data were selected: balance
  calibrated,     // an A/A run that found nothing
  miscalibrated   // an A/A run that found something
};
std::string_view to_text(Verdict verdict);
std::optional<Verdict> verdict_named(std::string_view text);

// Facts from the runner that the verdict needs.
struct Circumstances {
  bool finished = false;    // no block will follow
  std::string hard_guard;   // what tripped; empty: nothing
  std::string stopped;      // who asked for it
  bool calibrated = false;  // an A/A run of the same design was calibrated
  // The share of the time that a NIC's worker, the worst one, was kept from its turns by a stop
  // longer than its hiccup threshold (several round trips) without having asked for it.
  double host_late = 0;
};

// Beyond this the host is too slow to be believed: waiting for the machine looks like waiting for
// the network, and stops the traffic whatever is in force.
inline constexpr double kMostHostLate = 0.1;

struct LiveAnalysis {
  std::uint32_t attempted = 0;
  std::uint32_t usable = 0;
  std::vector<std::string> discarded;
  std::vector<std::string> errors;
  std::vector<BalanceCheck> balance;
  std::vector<MetricResult> metrics;  // the primary first
  std::vector<SequencePoint> course;  // of the primary, pair by pair
  double explained = 0;               // by covariates, of the primary's variance
  std::vector<StratumResult> strata;
  Interference interference;
  CarryoverCheck carryover;
  std::uint32_t pairs_for_effect = 0;  // that minimum_effect needs, with the sd seen; 0: not known
  Verdict verdict = Verdict::running;
  std::vector<std::string> reasons;  // a sentence each
  bool mismatch() const;
  const MetricResult& primary() const { return metrics.front(); }
};

struct AnalysisOptions {
  bool full = true;  // false: sequences only, for a look between pairs
  std::uint32_t redraws = kRedraws;
  std::uint32_t resamples = 10'000;
};

LiveAnalysis analyse_live(const Plan& plan, const Schedule& schedule,
                          std::span<const BlockRecord> records, const Circumstances& circumstances,
                          const AnalysisOptions& options = {});

// Applies the rule to the figures (decision.cc).
void decide(const Plan& plan, const Circumstances& circumstances, LiveAnalysis& analysis);

}  // namespace paceline::experiment::live
