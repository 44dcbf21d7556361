#include "control/experiment/analysis/effects.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "control/experiment/analysis/notes.h"
#include "control/experiment/analysis/pairing.h"

namespace paceline::experiment {
namespace {

// Occasional metrics have numbers of their own, so that another one leaves the streams of all other
// metrics unchanged.
std::size_t stream_number(Metric metric) {
  constexpr std::size_t kOccasional = 0x8000;
  const bool occasional = spec_of(metric).occasional;
  const auto& table = metric_table();
  const auto before =
      std::count_if(table.begin(), table.begin() + static_cast<std::ptrdiff_t>(index_of(metric)),
                    [occasional](const MetricSpec& spec) { return spec.occasional == occasional; });
  return (occasional ? kOccasional : 0) + static_cast<std::size_t>(before);
}

// One bootstrap stream per comparison. The summaries come after all scenarios.
std::uint64_t stream_of(std::size_t block, std::size_t arm, std::size_t metric) {
  return (std::uint64_t{block} << 32) | (std::uint64_t{arm} << 16) | metric;
}

InferenceOptions options_of(const AnalysisPlan& plan, std::uint64_t stream) {
  InferenceOptions options;
  options.confidence = plan.confidence;
  options.resamples = plan.resamples;
  options.seed = plan.seed;
  options.stream = stream;
  return options;
}

struct Outcome {
  bool by_completion = false;
  bool identical = false;
  double direction = 0;  // > 0: the arm's values are higher; with by_completion: the arm wins
  double p_two_sided = kUndefined;
};

Outcome decide(const Pairs& pairs, const PairedEffect& paired, const MetricSpec& spec) {
  Outcome outcome;
  const MeanEstimate& estimate = paired.estimate;
  if (spec.needs_completion && pairs.censored_arm + pairs.censored_baseline > 0) {
    std::uint32_t wins = pairs.censored_baseline;
    std::uint32_t losses = pairs.censored_arm;
    for (std::size_t i = 0; i < pairs.baseline.size(); ++i) {
      const double difference = pairs.treatment[i] - pairs.baseline[i];  // NaN counts for neither
      wins += spec.better == Better::higher ? difference > 0 : difference < 0;
      losses += spec.better == Better::higher ? difference < 0 : difference > 0;
    }
    outcome.by_completion = true;
    outcome.direction = static_cast<double>(wins) - static_cast<double>(losses);
    outcome.p_two_sided = sign_test(wins, losses);
  } else if (estimate.method != Method::none) {
    outcome.identical = estimate.method == Method::identical && estimate.mean == 0;
    outcome.direction = estimate.mean;
    if (!outcome.identical) outcome.p_two_sided = estimate.p_two_sided();
  }
  return outcome;
}

Verdict in_words(const Outcome& outcome, const MetricSpec& spec, bool significant) {
  if (outcome.identical) return Verdict::identical;
  if (std::isnan(outcome.p_two_sided)) return Verdict::too_few;
  if (!significant || outcome.direction == 0) return Verdict::no_difference;
  const bool up = outcome.direction > 0;
  if (outcome.by_completion) return up ? Verdict::better : Verdict::worse;
  if (spec.better == Better::neither) return up ? Verdict::higher : Verdict::lower;
  return up == (spec.better == Better::higher) ? Verdict::better : Verdict::worse;
}

// An effect waiting for the correction over its family.
struct Pending {
  std::size_t comparison;
  std::size_t effect;
  Outcome outcome;
};

RunCounts counts_of(const RunGrid& grid, std::size_t scenario, std::size_t arm) {
  RunCounts counts;
  for (std::uint32_t r = 0; r < grid.repetitions(); ++r) {
    const RunResult* run = grid.at(scenario, arm, r);
    if (run == nullptr) {
      ++counts.missing;
      continue;
    }
    counts.ok += run->status == RunStatus::ok;
    counts.unfinished += run->status == RunStatus::unfinished;
    counts.failed += run->status == RunStatus::failed;
    counts.messages_started += run->messages_started;
    counts.messages_completed += run->messages_completed;
  }
  return counts;
}

// Adjusts one family of p-values and gives its members their verdicts.
std::uint32_t settle(Analysis& analysis, const std::vector<Pending>& pending, Role role) {
  std::vector<double> p;
  std::vector<const Pending*> members;
  for (const Pending& item : pending) {
    const MetricEffect& effect = analysis.comparisons[item.comparison].effects[item.effect];
    if (effect.role != role) continue;
    members.push_back(&item);
    p.push_back(effect.p);
  }
  const double alpha = role == Role::guardrail ? kGuardrailAlpha : 1 - analysis.plan.confidence;
  std::vector<double> adjusted = p;
  if (role == Role::primary) adjusted = holm(p);
  if (role == Role::exploratory) adjusted = benjamini_hochberg(p);
  std::uint32_t tests = 0;
  for (std::size_t i = 0; i < members.size(); ++i) {
    MetricEffect& effect = analysis.comparisons[members[i]->comparison].effects[members[i]->effect];
    effect.p_adjusted = adjusted[i];
    effect.verdict = in_words(members[i]->outcome, spec_of(effect.metric), adjusted[i] < alpha);
    tests += !std::isnan(adjusted[i]);
  }
  return tests;
}

Summary summarise(const RunGrid& grid, const AnalysisPlan& plan, std::size_t index,
                  std::size_t arm) {
  Summary summary;
  summary.spec = plan.summaries[index];
  summary.arm = plan.arms[arm];
  std::vector<std::size_t> places;
  for (const std::string& name : summary.spec.scenarios) {
    const auto found = std::find(plan.scenarios.begin(), plan.scenarios.end(), name);
    if (found == plan.scenarios.end()) {
      throw std::invalid_argument(
          fmt::format("summary '{}' of unknown scenario '{}'", summary.spec.label, name));
    }
    places.push_back(static_cast<std::size_t>(found - plan.scenarios.begin()));
  }
  if (places.empty()) {
    throw std::invalid_argument(fmt::format("summary '{}' of no scenario", summary.spec.label));
  }
  const MetricSpec& spec = spec_of(summary.spec.metric);
  const Pairs pairs = geometric_pairs(grid, places, arm, summary.spec.metric);
  const std::uint64_t stream =
      stream_of(plan.scenarios.size() + index, arm, index_of(summary.spec.metric));
  summary.pairs = pairs.complete;
  summary.paired =
      paired_effect(pairs.baseline, pairs.treatment, Compare::ratio, options_of(plan, stream));
  const Outcome outcome = decide(pairs, summary.paired, spec);
  summary.p = outcome.p_two_sided;
  summary.verdict = in_words(outcome, spec, summary.p < 1 - plan.confidence);
  return summary;
}

}  // namespace

const MetricEffect* Comparison::find(Metric metric) const {
  for (const MetricEffect& effect : effects) {
    if (effect.metric == metric) return &effect;
  }
  return nullptr;
}

const MetricEffect* Comparison::primary() const {
  for (const MetricEffect& effect : effects) {
    if (effect.role == Role::primary) return &effect;
  }
  return nullptr;
}

AnalysisPlan plan_of(const config::Experiment& experiment) {
  AnalysisPlan plan;
  plan.name = experiment.name;
  plan.seed = experiment.seed;
  plan.confidence = experiment.confidence;
  plan.repetitions = experiment.repetitions;
  SummarySpec collectives;
  for (const config::Scenario& scenario : experiment.scenarios) {
    plan.scenarios.push_back(scenario.name);
    const std::string& kind = scenario.workload.kind;
    if (kind == "incast" || kind == "all_to_all" || kind == "ring_all_reduce") {
      collectives.scenarios.push_back(scenario.name);
    }
  }
  for (const config::Arm& arm : experiment.arms) plan.arms.push_back(arm.name);
  collectives.label = "collective efficiency, all collectives";
  if (collectives.scenarios.size() > 1) plan.summaries.push_back(collectives);
  return plan;
}

Analysis analyse(std::span<const RunResult> runs, const AnalysisPlan& plan) {
  Analysis analysis;
  analysis.plan = plan;
  const RunGrid grid(runs, plan.scenarios, plan.arms, plan.repetitions);
  std::vector<Pending> pending;
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    for (std::size_t a = 1; a < plan.arms.size(); ++a) {
      Comparison comparison;
      comparison.scenario = plan.scenarios[s];
      comparison.arm = plan.arms[a];
      comparison.baseline_runs = counts_of(grid, s, 0);
      comparison.arm_runs = counts_of(grid, s, a);
      bool has_primary = false;
      for (const MetricSpec& spec : metric_table()) {
        if (!applies(grid, s, a, spec.metric)) continue;
        const Pairs pairs = pairs_of(grid, s, a, spec.metric);
        const std::uint64_t stream = stream_of(s, a, stream_number(spec.metric));
        MetricEffect effect;
        effect.metric = spec.metric;
        effect.role = spec.role;
        if (spec.role == Role::primary) {
          if (has_primary) effect.role = Role::exploratory;
          has_primary = true;
        }
        effect.pairs = pairs.complete;
        effect.censored_arm = pairs.censored_arm;
        effect.censored_baseline = pairs.censored_baseline;
        effect.censored_both = pairs.censored_both;
        effect.paired =
            paired_effect(pairs.baseline, pairs.treatment, spec.compare, options_of(plan, stream));
        if (effect.role != Role::description) {
          const Outcome outcome = decide(pairs, effect.paired, spec);
          effect.by_completion = outcome.by_completion;
          effect.p = effect.role == Role::guardrail ? outcome.p_two_sided / 2 : outcome.p_two_sided;
          pending.push_back({analysis.comparisons.size(), comparison.effects.size(), outcome});
        }
        comparison.effects.push_back(effect);
      }
      analysis.comparisons.push_back(std::move(comparison));
    }
  }
  analysis.primary_tests = settle(analysis, pending, Role::primary);
  settle(analysis, pending, Role::guardrail);
  analysis.exploratory_tests = settle(analysis, pending, Role::exploratory);
  for (std::size_t i = 0; i < plan.summaries.size(); ++i) {
    for (std::size_t a = 1; a < plan.arms.size(); ++a) {
      analysis.summaries.push_back(summarise(grid, plan, i, a));
    }
  }
  analysis.notes = notes_of(analysis, grid);
  return analysis;
}

std::string_view to_text(Verdict verdict) {
  switch (verdict) {
    case Verdict::better:
      return "better";
    case Verdict::worse:
      return "worse";
    case Verdict::higher:
      return "higher";
    case Verdict::lower:
      return "lower";
    case Verdict::no_difference:
      return "no difference shown";
    case Verdict::identical:
      return "identical";
    case Verdict::too_few:
      return "too few pairs";
    case Verdict::described:
      return "";
  }
  return "?";
}

}  // namespace paceline::experiment
