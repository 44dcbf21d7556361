#include "control/experiment/live/analysis/interference.h"

#include <cmath>

#include "dataplane/base/numbers/math.h"

namespace paceline::experiment::live {

namespace {

struct Moments {
  double n = 0;
  double mean = 0;
  double variance = 0;  // with n - 1
};

Moments moments_of(std::span<const double> values) {
  Moments out;
  out.n = static_cast<double>(values.size());
  for (const double v : values) out.mean += v / out.n;
  for (const double v : values) out.variance += (v - out.mean) * (v - out.mean) / (out.n - 1);
  return out;
}

// The value on the scale on which differences are taken.
double on_scale(BlockMetric metric, double value) {
  return info(metric).scale == Scale::ratio ? det_log(value) : value;
}

// Mean over a pair's clusters of the blocks in `arm`.
double level(const PairData& pair, BlockMetric metric, std::size_t arm) {
  double sum = 0;
  for (const auto& records : pair.clusters) sum += on_scale(metric, records[arm]->values[metric]);
  return sum / static_cast<double>(pair.clusters.size());
}

Interval t_bounds(std::span<const double> values, double alpha) {
  return t_interval(values, 1 - alpha).interval;
}

}  // namespace

WelchResult welch(std::span<const double> a, std::span<const double> b, double alpha) {
  WelchResult out;
  if (a.size() < 2 || b.size() < 2) return out;
  const Moments x = moments_of(a);
  const Moments y = moments_of(b);
  out.difference = y.mean - x.mean;
  const double vx = x.variance / x.n;
  const double vy = y.variance / y.n;
  if (!(vx + vy > 0)) return out;
  const double freedom = (vx + vy) * (vx + vy) / (vx * vx / (x.n - 1) + vy * vy / (y.n - 1));
  const double error = std::sqrt(vx + vy);
  const double reach = t_quantile(1 - alpha / 2, freedom) * error;
  out.interval = {out.difference - reach, out.difference + reach};
  out.p = 2 * t_cdf(-std::fabs(out.difference) / error, freedom);
  return out;
}

Interference measure_interference(const PairTable& table, BlockMetric metric, double alpha) {
  Interference out;
  const Contrasts crossed = contrasts_of(table, metric, false);
  const Contrasts whole = contrasts_of(table, metric, true);
  out.crossed_pairs = static_cast<std::uint32_t>(crossed.means.size());
  out.whole_pairs = static_cast<std::uint32_t>(whole.means.size());
  if (out.crossed_pairs < 2 || out.whole_pairs < 2) return out;
  out.known = true;
  const auto mean = [](const Contrasts& c) { return moments_of(c.means).mean; };
  out.naive = mean(crossed);
  out.naive_interval = t_bounds(crossed.means, alpha);
  out.total = mean(whole);
  out.total_interval = t_bounds(whole.means, alpha);
  const WelchResult gap = welch(whole.means, crossed.means, alpha);
  out.gap = gap.difference;
  out.gap_interval = gap.interval;
  // Champion clusters: beside candidates (crossed pairs), and among themselves (whole pairs).
  std::vector<double> beside, alone;
  for (const PairData& pair : table.usable) {
    const double value = level(pair, metric, 0);
    if (std::isfinite(value)) (pair.whole ? alone : beside).push_back(value);
  }
  const WelchResult spilled = welch(alone, beside, alpha);
  out.spillover = spilled.difference;
  out.spillover_interval = spilled.interval;
  return out;
}

CarryoverCheck check_carryover(const PairTable& table, const Schedule& schedule,
                               BlockMetric metric) {
  CarryoverCheck out;
  if (schedule.mechanism.clusters != 1) return out;
  // The second block of a pair always follows a change; the first may or may not. A lasting
  // influence of the block before draws a block towards that block's arm, so contrasts are smaller
  // where both blocks follow a change.
  std::vector<double> changed, same;
  for (const PairData& pair : table.usable) {
    if (pair.pair == 0) continue;
    const std::uint32_t first = 2 * pair.pair;
    const double d = level(pair, metric, 1) - level(pair, metric, 0);
    if (!std::isfinite(d)) continue;
    (schedule.arm(first - 1, 0) == schedule.arm(first, 0) ? same : changed).push_back(d);
  }
  out.after_change = static_cast<std::uint32_t>(changed.size());
  out.after_same = static_cast<std::uint32_t>(same.size());
  const WelchResult result = welch(same, changed, 0.05);
  out.difference = result.difference;
  out.p = result.p;
  return out;
}

}  // namespace paceline::experiment::live
