#include "control/experiment/report/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "control/experiment/report/value_text.h"

namespace paceline::experiment {
namespace {

std::string percent_of(double confidence) { return significant(confidence * 100); }

std::string limiters_of(const Comparison& comparison, const std::string& name, bool baseline) {
  std::vector<std::string> parts;
  for (unsigned i = 0; i < cc::kLimiters; ++i) {
    const MetricEffect* effect = comparison.find(limiter_metric(static_cast<cc::Limiter>(i)));
    if (effect == nullptr) continue;
    const double share = baseline ? effect->paired.baseline_mean : effect->paired.treatment_mean;
    if (!(share >= 0.005)) continue;
    constexpr std::string_view kPrefix = "limited by ";
    parts.push_back(fmt::format("{} {:.0f} %", spec_of(effect->metric).label.substr(kPrefix.size()),
                                share * 100));
  }
  if (parts.empty()) return {};
  return fmt::format("time of {} limited by: {}", name, fmt::join(parts, ", "));
}

void add_remarks(ReportBlock& block, const Comparison& comparison, const Analysis& analysis,
                 const std::vector<const MetricEffect*>& shown) {
  std::vector<std::string_view> by_difference;
  std::vector<std::string> fewer;
  const MetricEffect* by_completion = nullptr;
  std::uint32_t pairs = 0;
  for (const MetricEffect* effect : shown) pairs = std::max(pairs, effect->pairs);
  for (const MetricEffect* effect : shown) {
    const std::string_view label = spec_of(effect->metric).label;
    if (effect->paired.fell_back && effect->pairs > 0 && effect->verdict != Verdict::identical) {
      by_difference.push_back(label);
    }
    if (effect->pairs != pairs) fewer.push_back(fmt::format("{} {}", label, effect->pairs));
    if (effect->by_completion) by_completion = effect;
  }
  if (by_completion != nullptr) {
    block.remarks.push_back(fmt::format(
        "only {} did not finish in {}, only {} in {} repetitions: verdicts on times, efficiency "
        "and "
        "goodput count these as lost (sign test); effects are over the {} pairs that both finished",
        comparison.arm, by_completion->censored_arm, analysis.plan.arms[0],
        by_completion->censored_baseline, by_completion->pairs));
  }
  if (!by_difference.empty()) {
    block.remarks.push_back(fmt::format("0 in some runs, so compared by difference, not ratio: {}",
                                        fmt::join(by_difference, "; ")));
  }
  if (!fewer.empty()) {
    block.remarks.push_back(fmt::format("pairs fewer than {}: {}", pairs, fmt::join(fewer, "; ")));
  }
  const MetricEffect* primary = comparison.primary();
  if (primary != nullptr && primary->verdict == Verdict::no_difference && !primary->by_completion &&
      !std::isnan(primary->paired.minimum_detectable)) {
    PairedEffect detectable = primary->paired;
    detectable.effect = detectable.minimum_detectable;
    detectable.interval = {};
    block.remarks.push_back(
        fmt::format("{}: these {} pairs find an effect of about {} with 80 % power, hardly less",
                    spec_of(primary->metric).label, primary->pairs,
                    effect_text(detectable, spec_of(primary->metric).unit).effect.substr(1)));
  }
  for (const bool baseline : {true, false}) {
    std::string line =
        limiters_of(comparison, baseline ? analysis.plan.arms[0] : comparison.arm, baseline);
    if (!line.empty()) block.remarks.push_back(std::move(line));
  }
}

std::string pairs_text(const Comparison& comparison) {
  std::uint32_t pairs = 0;
  for (const MetricEffect& effect : comparison.effects) pairs = std::max(pairs, effect.pairs);
  return fmt::format("{} pair{}", pairs, pairs == 1 ? "" : "s");
}

}  // namespace

ReportRow row_of(const MetricEffect& effect) {
  const MetricSpec& spec = spec_of(effect.metric);
  const PairedEffect& paired = effect.paired;
  const DisplayUnit unit =
      display_unit(spec.unit, std::max(paired.baseline_mean, paired.treatment_mean));
  const EffectText text = effect_text(paired, spec.unit);
  ReportRow row;
  row.role = effect.role;
  row.label = spec.label;
  row.baseline = significant(paired.baseline_mean * unit.factor);
  row.arm = significant(paired.treatment_mean * unit.factor);
  row.unit = unit.name;
  row.effect = effect.verdict == Verdict::identical ? "0" : text.effect;
  row.interval = effect.verdict == Verdict::identical ? "" : text.interval;
  row.p = p_text(effect.p_adjusted);
  row.verdict = effect.verdict;
  row.verdict_text = to_text(effect.verdict);
  return row;
}

Report report_of(const Analysis& analysis, bool all_metrics) {
  const AnalysisPlan& plan = analysis.plan;
  Report report;
  bool bootstrap = false;
  bool t = false;
  for (const Comparison& comparison : analysis.comparisons) {
    for (const MetricEffect& effect : comparison.effects) {
      bootstrap = bootstrap || effect.paired.estimate.method == Method::bca_bootstrap;
      t = t || effect.paired.estimate.method == Method::paired_t;
    }
  }
  const std::vector<std::string> others(
      plan.arms.begin() +
          std::min<std::ptrdiff_t>(1, static_cast<std::ptrdiff_t>(plan.arms.size())),
      plan.arms.end());
  report.heading.push_back(
      fmt::format("{}: {} against {} (baseline), {} paired repetitions, seed {}", plan.name,
                  fmt::join(others, ", "), plan.arms.empty() ? "?" : plan.arms[0], plan.repetitions,
                  plan.seed));
  report.heading.emplace_back(
      "effect: arm over baseline, geometric mean of paired ratios - 1; with a unit: mean "
      "difference");
  report.heading.push_back(fmt::format("interval: {} %, {} over repetitions, never over flows",
                                       percent_of(plan.confidence),
                                       !bootstrap ? "paired t"
                                       : t        ? "paired t below 20 pairs, else BCa bootstrap,"
                                                  : "BCa bootstrap"));

  for (const Comparison& comparison : analysis.comparisons) {
    ReportBlock block;
    block.baseline_name = plan.arms[0];
    block.arm_name = comparison.arm;
    block.title = fmt::format("{}: {} against {}, {}", comparison.scenario, comparison.arm,
                              plan.arms[0], pairs_text(comparison));
    std::vector<const MetricEffect*> shown;
    for (const MetricEffect& effect : comparison.effects) {
      // Limiter shares have a line of their own, except in the full table.
      if (all_metrics || spec_of(effect.metric).headline) shown.push_back(&effect);
    }
    std::stable_partition(shown.begin(), shown.end(),
                          [](const MetricEffect* effect) { return effect->role == Role::primary; });
    for (const MetricEffect* effect : shown) block.rows.push_back(row_of(*effect));
    add_remarks(block, comparison, analysis, shown);
    report.blocks.push_back(std::move(block));
  }
  report.legend = {
      fmt::format("P  primary: decides; p after Holm's correction for {} comparison{}",
                  analysis.primary_tests, analysis.primary_tests == 1 ? "" : "s"),
      "G  guardrail: must not get worse; one-sided p, level .01",
      fmt::format(
          "   exploratory: p after Benjamini-Hochberg over {} comparisons; a hint, no proof",
          analysis.exploratory_tests),
  };
  report.summary = summary_of(analysis);
  for (const std::string& arm : others) report.losses.push_back(losses_of(analysis, arm));
  report.notes = analysis.notes;
  return report;
}

std::vector<std::string> summary_of(const Analysis& analysis) {
  std::vector<std::string> lines;
  const auto line = [](const std::string& what, const std::string& arm, const PairedEffect& paired,
                       Unit unit, std::string_view verdict) {
    const EffectText text = effect_text(paired, unit);
    return fmt::format("{}: {} {}{}{}, {}", what, arm, text.effect,
                       text.interval.empty() ? "" : " ", text.interval, verdict);
  };
  for (const Comparison& comparison : analysis.comparisons) {
    const MetricEffect* primary = comparison.primary();
    if (primary == nullptr) {
      lines.push_back(fmt::format(
          "{}: {}", comparison.scenario,
          comparison.effects.empty() ? "no run has finished" : "no primary metric applies"));
      continue;
    }
    const MetricSpec& spec = spec_of(primary->metric);
    lines.push_back(line(fmt::format("{}, {}", comparison.scenario, spec.label), comparison.arm,
                         primary->paired, spec.unit, to_text(primary->verdict)));
  }
  for (const Summary& summary : analysis.summaries) {
    const std::string fewer =
        summary.pairs == analysis.plan.repetitions ? "" : fmt::format(", {} pairs", summary.pairs);
    lines.push_back(line(fmt::format("{} (geometric mean over {}{})", summary.spec.label,
                                     fmt::join(summary.spec.scenarios, ", "), fewer),
                         summary.arm, summary.paired, spec_of(summary.spec.metric).unit,
                         to_text(summary.verdict)));
  }
  return lines;
}

Report::Losses losses_of(const Analysis& analysis, const std::string& arm) {
  Report::Losses losses;
  losses.arm = arm;
  for (const Comparison& comparison : analysis.comparisons) {
    if (comparison.arm != arm) continue;
    if (comparison.primary() == nullptr) {
      losses.lines.push_back(
          fmt::format("{}: no comparison of a primary metric", comparison.scenario));
    }
    for (const MetricEffect& effect : comparison.effects) {
      const bool undecided_primary =
          effect.role == Role::primary && effect.verdict != Verdict::better;
      if (!undecided_primary && effect.verdict != Verdict::worse) continue;
      const MetricSpec& spec = spec_of(effect.metric);
      const EffectText text = effect_text(effect.paired, spec.unit);
      losses.lines.push_back(
          fmt::format("{}, {}{}: {}{}", comparison.scenario, spec.label,
                      effect.role == Role::guardrail ? " (guardrail)" : "", to_text(effect.verdict),
                      effect.verdict == Verdict::identical || effect.verdict == Verdict::too_few
                          ? ""
                          : fmt::format(", {}{}{}", text.effect, text.interval.empty() ? "" : " ",
                                        text.interval)));
    }
  }
  return losses;
}

}  // namespace paceline::experiment
