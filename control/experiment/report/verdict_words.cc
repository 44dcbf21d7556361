#include "control/experiment/report/verdict_words.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "control/experiment/report/value_text.h"

namespace paceline::experiment {
namespace {

std::string with_unit(double value, const DisplayUnit& unit) {
  return fmt::format("{}{}{}", significant(value * unit.factor), unit.name.empty() ? "" : " ",
                     unit.name);
}

// "97.87 % against 87.14 %, +12.3 % (95 % interval [+11.2, +13.4], 12 pairs, p <.001)"
std::string figures(const MetricEffect& effect, const AnalysisPlan& plan) {
  const PairedEffect& paired = effect.paired;
  const MetricSpec& spec = spec_of(effect.metric);
  const DisplayUnit unit =
      display_unit(spec.unit, std::max(paired.baseline_mean, paired.treatment_mean));
  const EffectText text = effect_text(paired, spec.unit);
  std::string out = fmt::format("{} against {}, {}", with_unit(paired.treatment_mean, unit),
                                with_unit(paired.baseline_mean, unit), text.effect);
  std::vector<std::string> how;
  if (!text.interval.empty()) {
    how.push_back(
        fmt::format("{} % interval {}", significant(plan.confidence * 100), text.interval));
  }
  how.push_back(fmt::format("{} pair{}", effect.pairs, effect.pairs == 1 ? "" : "s"));
  if (!std::isnan(effect.p_adjusted)) {
    const std::string p = p_text(effect.p_adjusted);
    how.push_back(fmt::format("p {}{}", p.front() == '<' ? "" : "= ", p));
  }
  return fmt::format("{} ({})", out, fmt::join(how, ", "));
}

std::string opening(const MetricEffect& effect, const std::string& arm,
                    const std::string& baseline) {
  switch (effect.verdict) {
    case Verdict::better:
      return fmt::format("{} is better than {}", arm, baseline);
    case Verdict::worse:
      return fmt::format("{} is worse than {}", arm, baseline);
    case Verdict::identical:
      return fmt::format("{} and {} are identical", arm, baseline);
    case Verdict::too_few:
      return fmt::format("Too few complete pairs to tell {} from {}", arm, baseline);
    default:
      return fmt::format("No difference between {} and {} was shown", arm, baseline);
  }
}

}  // namespace

VerdictWords verdict_words(const Comparison& comparison, const AnalysisPlan& plan) {
  VerdictWords words;
  const std::string& baseline = plan.arms.at(0);
  const MetricEffect* primary = comparison.primary();
  if (comparison.effects.empty() ||
      (primary != nullptr && primary->pairs == 0 && !primary->by_completion)) {
    words.sentence =
        fmt::format("No pair of runs of {} and {} has finished.", comparison.arm, baseline);
  } else if (primary == nullptr) {
    words.sentence =
        fmt::format("No primary metric applies to {} against {}.", comparison.arm, baseline);
  } else {
    words.verdict = primary->verdict;
    words.sentence = fmt::format("{}: {}{}.", opening(*primary, comparison.arm, baseline),
                                 spec_of(primary->metric).label,
                                 primary->pairs == 0 ? std::string(", no pair finished under both")
                                                     : fmt::format(" {}", figures(*primary, plan)));
    if (primary->verdict == Verdict::no_difference &&
        !std::isnan(primary->paired.minimum_detectable) && !primary->by_completion) {
      PairedEffect detectable = primary->paired;
      detectable.effect = detectable.minimum_detectable;
      detectable.interval = {};
      words.sentence += fmt::format(
          " These pairs would have found an effect of about {} with 80 % power, hardly less.",
          effect_text(detectable, spec_of(primary->metric).unit).effect.substr(1));
    }
    if (primary->by_completion) {
      words.sentence +=
          fmt::format(" The verdict counts runs that did not finish as lost: {} of {}, {} of {}.",
                      primary->censored_arm, comparison.arm, primary->censored_baseline, baseline);
    }
  }
  std::vector<std::string> worse;
  for (const MetricEffect& effect : comparison.effects) {
    if (&effect == primary || effect.verdict != Verdict::worse) continue;
    const MetricSpec& spec = spec_of(effect.metric);
    worse.push_back(fmt::format("{}{} {}", spec.label,
                                effect.role == Role::guardrail ? " (guardrail)" : "",
                                effect_text(effect.paired, spec.unit).effect));
  }
  if (!worse.empty()) {
    words.losses = fmt::format("{} is worse in {}.", comparison.arm, fmt::join(worse, "; "));
  }
  return words;
}

}  // namespace paceline::experiment
