#include "control/experiment/live/analysis/analysis.h"

#include <algorithm>
#include <cmath>

#include "control/experiment/live/analysis/covariates.h"
#include "control/experiment/live/analysis/interference.h"
#include "control/experiment/live/analysis/studentised.h"
#include "control/experiment/live/plan/planning.h"

namespace paceline::experiment::live {

namespace {

constexpr std::uint64_t kBootstrapStreams = 0xB007;

// NaN where one is.
Interval hull(const Interval& a, const Interval& b) {
  if (std::isnan(a.low)) return b;
  if (std::isnan(b.low)) return a;
  return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

// A guard's limit as a contrast: worse values lie beyond it, away from 0.
double limit_of(const SoftLimit& limit) {
  const BlockMetricInfo& about = info(limit.metric);
  const double sign = about.better == Better::higher ? -1 : 1;
  if (about.scale == Scale::difference) return sign * limit.worse_by;
  // 5 % less goodput is a factor of .95, 20 % more delay one of 1.2. Beyond -100 % nothing is.
  return log_effect(std::max(-0.999, sign * limit.worse_by));
}

void judge_guard(const Plan& plan, const SoftLimit& limit, std::span<const double> values,
                 MetricResult& out) {
  out.limit = limit_of(limit);
  if (values.size() < kLeastPairs / 2) return;
  out.guard = one_sided_bounds(values, plan.soft_alpha);
  const bool high_is_bad = info(limit.metric).better == Better::lower;
  out.breached = high_is_bad ? out.guard.low > out.limit : out.guard.high < out.limit;
  out.cleared = high_is_bad ? out.guard.high < out.limit : out.guard.low > out.limit;
}

class Analyser {
 public:
  Analyser(const Plan& plan, const Schedule& schedule, std::span<const BlockRecord> records,
           const AnalysisOptions& options, LiveAnalysis& out)
      : plan_(plan), schedule_(schedule), records_(records), options_(options), out_(out) {}

  void run(bool running) {
    table_ = pair_up(schedule_, records_, running);
    out_.attempted = table_.attempted;
    out_.usable = table_.attempted - table_.discarded;
    out_.discarded = table_.why;
    out_.errors = table_.errors;
    out_.balance = check_balance(table_, plan_.closed_loop);
    add(plan_.primary, MetricRole::primary);
    for (const SoftLimit& limit : plan_.soft) add(limit.metric, MetricRole::guardrail, &limit);
    if (options_.full) {
      for (const BlockMetric m : plan_.metrics) add(m, MetricRole::exploratory);
      for (const BlockMetric m : plan_.placebos) add(m, MetricRole::placebo);
      correct();
    }
    if (plan_.carryover_blocks == 0) look_closer();
  }

 private:
  bool whole() const { return plan_.design == Design::switchback; }

  void add(BlockMetric metric, MetricRole role, const SoftLimit* limit = nullptr) {
    MetricResult result;
    result.metric = metric;
    result.role = role;
    if (plan_.carryover_blocks > 0) {
      with_carryover(result);
    } else {
      by_pairs(result, limit);
    }
    out_.metrics.push_back(result);
  }

  void by_pairs(MetricResult& result, const SoftLimit* limit) {
    Contrasts contrasts = contrasts_of(table_, result.metric, whole());
    result.missing = contrasts.missing;
    result.champion = contrasts.champion;
    result.candidate = contrasts.candidate;
    if (result.role == MetricRole::primary) {
      if (plan_.cuped && !plan_.closed_loop) {
        const std::vector<double> plain = contrasts.means;
        const Adjusted adjusted = adjust(plain, covariates_of(table_, contrasts));
        out_.explained = adjusted.explained;
        for (std::size_t i = 0; i < plain.size(); ++i) {
          const double moved = adjusted.values[i] - plain[i];
          contrasts.means[i] = adjusted.values[i];
          for (double& value : contrasts.by_cluster[i]) value += moved;
        }
      }
      out_.course = sequence_of(contrasts.means, plan_.alpha);
      strata(contrasts);
    }
    const SequencePoint point = sequence_at(contrasts.means, plan_.alpha);
    result.n = point.n;
    result.mean = point.mean;
    result.sd = point.sd;
    result.sequence = point.interval;
    result.decision = result.sequence;
    if (limit != nullptr) judge_guard(plan_, *limit, contrasts.means, result);
    if (!options_.full || contrasts.means.size() < 2) return;
    const BootstrapResult bootstrap =
        studentised_bootstrap(contrasts.means, plan_.alpha, options_.resamples, plan_.seed,
                              kBootstrapStreams + static_cast<std::uint64_t>(result.metric));
    result.bootstrap = bootstrap.interval;
    const RandomisationResult randomised =
        randomisation_test(contrasts, schedule_, plan_.alpha, plan_.seed, options_.redraws);
    result.randomised = randomised.interval;
    result.decision = hull(hull(result.sequence, result.bootstrap), result.randomised);
    result.p = std::max(bootstrap.p, randomised.p);
  }

  // Fixed number of blocks, so nothing before the end, and no sequence.
  void with_carryover(MetricResult& result) {
    if (!options_.full) return;
    std::vector<double> values(schedule_.blocks(), kUndefined);
    double sums[2] = {0, 0};
    double counts[2] = {0, 0};
    for (const BlockRecord& record : records_) {
      const BlockPlace& place = record.place;
      if (record.discarded != Discarded::no || place.block >= schedule_.blocks()) continue;
      const double value = record.values[result.metric];
      // As in a pair: with 1, a contrast is the logarithm; with 0, the value itself.
      const double base = info(result.metric).scale == Scale::ratio ? 1 : 0;
      values[place.block] = contrast(result.metric, base, value);
      if (!std::isfinite(value)) continue;
      sums[place.arm] += value;
      counts[place.arm] += 1;
    }
    result.champion = sums[0] / counts[0];
    result.candidate = sums[1] / counts[1];
    const CarryoverResult estimate =
        carryover_estimate(values, schedule_, plan_.alpha, plan_.seed, options_.redraws);
    result.n = estimate.used[0] + estimate.used[1];
    result.mean = estimate.mean;
    result.randomised = estimate.randomised.interval;
    result.decision = result.randomised;
    result.p = estimate.randomised.p;
  }

  void strata(const Contrasts& contrasts) {
    double from = 0;
    for (std::size_t i = 0; i <= plan_.load_strata.size(); ++i) {
      StratumResult stratum;
      stratum.from = from;
      stratum.to = i < plan_.load_strata.size() ? plan_.load_strata[i]
                                                : std::numeric_limits<double>::infinity();
      from = stratum.to;
      std::vector<double> values;
      for (std::size_t p = 0; p < contrasts.means.size(); ++p) {
        if (contrasts.loads[p] >= stratum.from && contrasts.loads[p] < stratum.to) {
          values.push_back(contrasts.means[p]);
        }
      }
      const SequencePoint point = sequence_at(values, plan_.alpha);
      stratum.n = point.n;
      stratum.mean = point.mean;
      stratum.sequence = point.interval;
      out_.strata.push_back(stratum);
    }
  }

  // False discoveries among all exploratory metrics together.
  void correct() {
    std::vector<double> p;
    for (const MetricResult& m : out_.metrics) {
      p.push_back(m.role == MetricRole::exploratory ? m.p : kUndefined);
    }
    const std::vector<double> adjusted = benjamini_hochberg(p);
    for (std::size_t i = 0; i < p.size(); ++i) out_.metrics[i].p_adjusted = adjusted[i];
  }

  void look_closer() {
    if (!options_.full) return;
    if (!whole()) out_.interference = measure_interference(table_, plan_.primary, plan_.alpha);
    out_.carryover = check_carryover(table_, schedule_, plan_.primary);
    const double sd = out_.primary().sd;
    if (sd >= 0) {
      out_.pairs_for_effect = pairs_needed(log_effect(plan_.minimum_effect), sd, plan_.alpha,
                                           plan_.power, plan_.pairs_min);
    }
  }

  const Plan& plan_;
  const Schedule& schedule_;
  std::span<const BlockRecord> records_;
  const AnalysisOptions& options_;
  LiveAnalysis& out_;
  PairTable table_;
};

}  // namespace

bool LiveAnalysis::mismatch() const {
  return std::any_of(balance.begin(), balance.end(),
                     [](const BalanceCheck& check) { return check.mismatch(); });
}

LiveAnalysis analyse_live(const Plan& plan, const Schedule& schedule,
                          std::span<const BlockRecord> records, const Circumstances& circumstances,
                          const AnalysisOptions& options) {
  LiveAnalysis out;
  Analyser(plan, schedule, records, options, out).run(!circumstances.finished);
  decide(plan, circumstances, out);
  return out;
}

std::string_view to_text(MetricRole role) {
  switch (role) {
    case MetricRole::primary:
      return "primary";
    case MetricRole::guardrail:
      return "guardrail";
    case MetricRole::exploratory:
      return "exploratory";
    case MetricRole::placebo:
      return "placebo";
  }
  return "?";
}

}  // namespace paceline::experiment::live
