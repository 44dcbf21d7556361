// The rule by which an experiment ends, and with which verdict.
//
// In this order: balance (if it fails, nothing can be said), the service's guard, soft guards, then
// whether the host was fast enough for the rest to be believed, and the primary metric: shown to be
// worse, shown to be better, shown to be within the minimum effect. Better alone is not enough to
// ship: see docs/experiments.md, "The verdict".
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "control/experiment/live/analysis/analysis.h"
#include "control/experiment/live/blocks/metric_words.h"
#include "control/experiment/live/plan/planning.h"
#include "control/experiment/report/value_text.h"
#include "dataplane/base/text/enum_text.h"

namespace paceline::experiment::live {

namespace {

constexpr EnumTexts<8> kVerdicts{"running",      "ship",    "harmful",    "no difference",
                                 "inconclusive", "invalid", "calibrated", "miscalibrated"};

constexpr double kLoadsThatMatter = 0.5;
constexpr double kPlaceboAlpha = 0.01;
constexpr double kCarryoverAlpha = 0.01;

std::string contrast_text(BlockMetric metric, double contrast) {
  return effect_words(metric, effect_of(metric, contrast));
}

// Reasons against shipping a candidate that was shown to be better.
enum class Objection : std::uint8_t {
  placebo,       // what no arm can change differs
  load,          // not shown at loads that matter
  total_effect,  // not shown for everywhere against nowhere
  carryover,     // blocks after a change of arms differ
  uncalibrated,  // no A/A run of the design
};

// Whether more pairs may yet answer it.
bool more_pairs_can_help(Objection objection) {
  return objection == Objection::load || objection == Objection::total_effect;
}

class Rule {
 public:
  Rule(const Plan& plan, const Circumstances& circumstances, LiveAnalysis& out)
      : plan_(plan), now_(circumstances), out_(out), primary_(out.metrics.front()) {
    const bool lower = info(primary_.metric).better == Better::lower;
    // Turned so that positive is better.
    gain_ = lower ? Interval{-primary_.decision.high, -primary_.decision.low} : primary_.decision;
  }

  void apply() {
    for (const BalanceCheck& check : out_.balance) {
      if (!check.mismatch()) continue;
      say("the arms do not hold what the schedule gave them: {} (p = {:.2g})", check.name, check.p);
      out_.verdict = Verdict::invalid;
    }
    if (!out_.errors.empty()) {
      say("{} records contradict the schedule; the first: {}", out_.errors.size(),
          out_.errors.front());
      out_.verdict = Verdict::invalid;
    }
    if (out_.verdict == Verdict::invalid) return;
    if (is_null_experiment(plan_)) return null_experiment();
    if (harmful()) {
      // A stop by the service is certain; a bad figure may be the machine's fault.
      if (host_was_slow() && now_.hard_guard.empty()) out_.verdict = Verdict::inconclusive;
      return;
    }
    if (now_.finished || !now_.stopped.empty()) {
      if (host_was_slow()) {
        out_.verdict = Verdict::inconclusive;
        return;
      }
    }
    if (enough() && gain_.high < 0) {
      say("{}: shown to be worse", info(primary_.metric).label);
      out_.verdict = Verdict::harmful;
      return;
    }
    if (enough() && gain_.low > 0) return better();
    if (enough() && within_minimum()) {
      say("{}: shown to be within {:.3g} % of the champion's", info(primary_.metric).label,
          100 * plan_.minimum_effect);
      out_.verdict = Verdict::no_difference;
      return;
    }
    if (now_.finished || !now_.stopped.empty()) unproven();
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> text, Args&&... args) {
    out_.reasons.push_back(fmt::format(text, std::forward<Args>(args)...));
  }

  // With modelled carry-over, only the whole schedule tells anything.
  bool enough() const {
    if (plan_.carryover_blocks > 0) return now_.finished;
    return primary_.n >= plan_.pairs_min;
  }

  bool within_minimum() const {
    const double reach = info(primary_.metric).scale == Scale::difference
                             ? plan_.minimum_effect
                             : log_effect(plan_.minimum_effect);
    return gain_.low > -reach && gain_.high < reach;
  }

  // A sentence that says so; added to a trip of the guard, too, which stays a trip.
  bool host_was_slow() {
    if (now_.host_late <= kMostHostLate) return false;
    say("the host was too slow: its workers were kept from their turns {:.0f} % of the time "
        "(allowed {:.0f} %); what was measured is the machine's as much as the network's",
        100 * now_.host_late, 100 * kMostHostLate);
    return true;
  }

  bool harmful() {
    if (!now_.hard_guard.empty()) {
      say("the guard went back to the champion: {}", now_.hard_guard);
      out_.verdict = Verdict::harmful;
    }
    for (const MetricResult& m : out_.metrics) {
      if (!m.breached) continue;
      say("{} is worse by more than allowed: {}, allowed {}", info(m.metric).label,
          contrast_text(m.metric, m.mean), contrast_text(m.metric, m.limit));
      out_.verdict = Verdict::harmful;
    }
    return out_.verdict == Verdict::harmful;
  }

  void null_experiment() {
    if (!now_.finished && now_.stopped.empty()) return;
    if (host_was_slow()) {
      out_.verdict = Verdict::inconclusive;
      return;
    }
    const bool enough_pairs = enough();
    if (!enough_pairs) say("only {} pairs; {} are needed", primary_.n, plan_.pairs_min);
    // Here the narrowest interval counts: two equal arms must look equal to each of them.
    const auto off = [&](const char* name, const Interval& interval) {
      if (!(interval.low > 0 || interval.high < 0)) return false;
      say("two equal arms differ by the {}", name);
      return true;
    };
    // The sequence, at alpha, over all looks; the fixed intervals would fail one A/A run in twenty
    // by design, so they are held to a p of kPlaceboAlpha.
    bool differs = off("confidence sequence", primary_.sequence);
    if (primary_.p < kPlaceboAlpha) {
      say("two equal arms differ: p = {:.2g}", primary_.p);
      differs = true;
    }
    differs = placebos_differ() || differs;
    if (differs) {
      out_.verdict = Verdict::miscalibrated;
    } else {
      out_.verdict = enough_pairs ? Verdict::calibrated : Verdict::inconclusive;
    }
  }

  bool placebos_differ() {
    bool any = false;
    for (const MetricResult& m : out_.metrics) {
      if (m.role != MetricRole::placebo || !(m.p < kPlaceboAlpha)) continue;
      say("{}, which no arm can change, differs (p = {:.2g})", info(m.metric).label, m.p);
      any = true;
    }
    return any;
  }

  // Better in all measurements together; is that enough?
  void better() {
    std::vector<Objection> objections;
    const auto object = [&](Objection objection, std::string why) {
      out_.reasons.push_back(std::move(why));
      objections.push_back(objection);
    };
    say("{}: {}", info(primary_.metric).label, contrast_text(primary_.metric, primary_.mean));
    if (placebos_differ()) objections.push_back(Objection::placebo);
    for (const StratumResult& s : out_.strata) {
      if (s.from < kLoadsThatMatter || s.n == 0) continue;
      const bool lower = info(primary_.metric).better == Better::lower;
      const double worst = lower ? -s.sequence.high : s.sequence.low;
      if (s.n < plan_.pairs_min || !(worst > 0)) {
        object(Objection::load,
               fmt::format("not shown at loads from {:.2g} on ({} pairs)", s.from, s.n));
      }
    }
    const Interference& between = out_.interference;
    if (between.known && between.interferes()) {
      const bool lower = info(primary_.metric).better == Better::lower;
      const double worst = lower ? -between.total_interval.high : between.total_interval.low;
      say("arms interfere: side by side {}, everywhere against nowhere {}",
          contrast_text(primary_.metric, between.naive),
          contrast_text(primary_.metric, between.total));
      if (!(worst > 0))
        object(Objection::total_effect, "the total effect is not shown to be better");
    }
    if (out_.carryover.p < kCarryoverAlpha) {
      object(Objection::carryover,
             fmt::format("blocks after a change of arms differ from others (p = {:.2g}): wash-out "
                         "too short, or blocks.carryover needed",
                         out_.carryover.p));
    }
    if (!now_.calibrated) {
      object(Objection::uncalibrated,
             plan_.no_calibration.empty()
                 ? "no calibrated A/A run of the same design"
                 : fmt::format("no A/A run of the same design, because: {}", plan_.no_calibration));
    }
    for (const MetricResult& m : out_.metrics) {
      if (m.role == MetricRole::guardrail && m.n > 0 && !m.cleared) {
        say("{} is not shown to be within its limit, nor beyond it", info(m.metric).label);
      }
    }
    const bool over = now_.finished || !now_.stopped.empty();
    if (objections.empty()) {
      out_.verdict = Verdict::ship;
    } else if (over || !std::all_of(objections.begin(), objections.end(), more_pairs_can_help)) {
      out_.verdict = Verdict::inconclusive;
    }
  }

  void unproven() {
    if (!now_.stopped.empty()) say("stopped: {}", now_.stopped);
    if (primary_.n < plan_.pairs_min) {
      say("only {} pairs could be used; {} are needed", primary_.n, plan_.pairs_min);
    } else {
      say("{}: no difference shown", info(primary_.metric).label);
    }
    if (out_.pairs_for_effect > primary_.n) {
      say("an effect of {:.3g} % would take about {} pairs", 100 * plan_.minimum_effect,
          out_.pairs_for_effect);
    }
    out_.verdict = Verdict::inconclusive;
  }

  const Plan& plan_;
  const Circumstances& now_;
  LiveAnalysis& out_;
  const MetricResult& primary_;
  Interval gain_;
};

}  // namespace

std::string_view to_text(Verdict verdict) { return enum_text(kVerdicts, verdict); }

std::optional<Verdict> verdict_named(std::string_view text) {
  return enum_value<Verdict>(kVerdicts, text);
}

void decide(const Plan& plan, const Circumstances& circumstances, LiveAnalysis& analysis) {
  Rule(plan, circumstances, analysis).apply();
}

}  // namespace paceline::experiment::live
