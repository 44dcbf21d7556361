#include "control/daemon/config/tuner_options.h"

#include <algorithm>

namespace paceline::daemon {

using tuner::online::TunerOptions;

namespace {

std::uint32_t windows_in(Picos span, Picos window) {
  return static_cast<std::uint32_t>((span.count + window.count - 1) / window.count);
}

}  // namespace

TunerOptions tuner_options(const DaemonConfig& config, std::uint64_t seed) {
  const TunerConfig& c = config.tuner;
  const Picos window = config.telemetry.interval;
  TunerOptions out;
  out.mode = tuner::online::mode_of(c.mode).value_or(tuner::online::Mode::off);
  out.seed = seed;
  out.block_windows = windows_in(c.block, window);
  out.wash_windows = windows_in(c.wash, window);
  out.learn_windows = std::max(1U, windows_in(c.learn, window));
  // Twice as long as an answer of the service may take.
  out.apply_windows = std::max(10U, windows_in(picos_from_micros(10'000'000), window));
  out.guard_ns = to_nanos(c.guard).count;
  out.explore_share = c.explore_share;
  if (c.explore_share <= 0) out.explore_credit = 0;
  out.constraints.pause_share = c.pause_limit;
  out.constraints.queue_p99_bytes = static_cast<double>(c.queue_limit);
  out.constraints.delay_p99_ns = static_cast<double>(to_nanos(c.delay_limit).count);
  return out;
}

std::vector<std::string> tuner_problems(const DaemonConfig& config) {
  const std::int64_t window_ns = to_nanos(config.telemetry.interval).count;
  return problems_of(tuner_options(config, 1), window_ns);
}

}  // namespace paceline::daemon
