#include "control/tuner/online/observation/objective.h"

#include <algorithm>

#include "dataplane/base/numbers/math.h"

namespace paceline::tuner::online {

namespace {

// Weights of the parts.
constexpr double kGoodput = 1;
constexpr double kSmall = -0.5;
constexpr double kLarge = -0.5;
constexpr double kCycles = -0.1;

constexpr double kTail = 0.99;

std::optional<double> log_of(const std::optional<double>& value) {
  if (!value) return std::nullopt;
  return det_log(*value);
}

}  // namespace

ObjectiveParts objective_parts(const Window& block) {
  ObjectiveParts parts;
  telemetry::MessageFigures all;
  for (const auto& figures : block.messages) telemetry::add(all, figures);
  if (all.begun_bytes > 0 || all.completed_bytes > 0) {
    // Messages begun before the block and completed in it count as completed. A ratio above 1 means
    // that a backlog shrank, which an earlier block had built up; it is limited to 1.
    const double offered = static_cast<double>(std::max(all.begun_bytes, all.completed_bytes));
    const double share = static_cast<double>(all.completed_bytes) / offered;
    parts.goodput = det_log(std::max(share, kLeastGoodputShare));
  }
  parts.stalled = all.begun > 0 && all.completed == 0;
  parts.small = log_of(slowdown_quantile(block.messages[0], kTail));
  if (block.phase_ratio > 0) {
    parts.large = det_log(block.phase_ratio);
  } else {
    telemetry::MessageFigures beyond = block.messages[1];
    telemetry::add(beyond, block.messages[2]);
    parts.large = log_of(slowdown_quantile(beyond, kTail));
  }
  if (block.cycles > 0 && block.cycle_packets > 0) {
    parts.cycles =
        det_log(static_cast<double>(block.cycles) / static_cast<double>(block.cycle_packets));
  }
  return parts;
}

std::optional<double> objective_difference(const ObjectiveParts& a, const ObjectiveParts& b) {
  bool any = false;
  double difference = 0;
  const auto part = [&](double weight, const std::optional<double>& x,
                        const std::optional<double>& y) {
    if (!x || !y) return;
    any = true;
    difference += weight * (*y - *x);
  };
  part(kGoodput, a.goodput, b.goodput);
  part(kSmall, a.small, b.small);
  part(kLarge, a.large, b.large);
  part(kCycles, a.cycles, b.cycles);
  if (!any) return std::nullopt;
  return difference;
}

std::optional<double> objective(const ObjectiveParts& parts) {
  if (!parts.goodput && !parts.small && !parts.large && !parts.cycles) return std::nullopt;
  return kGoodput * parts.goodput.value_or(0) + kSmall * parts.small.value_or(0) +
         kLarge * parts.large.value_or(0) + kCycles * parts.cycles.value_or(0);
}

}  // namespace paceline::tuner::online
