#include "control/experiment/live/blocks/metric_words.h"

#include <fmt/format.h>

#include <cmath>

#include "control/experiment/report/value_text.h"

namespace paceline::experiment::live {

namespace {

bool is_share(BlockMetric metric) { return info(metric).name.ends_with("_share"); }

}  // namespace

std::string value_words(BlockMetric metric, double value) {
  if (!std::isfinite(value)) return "-";
  const bool rate = metric == BlockMetric::goodput || metric == BlockMetric::offered ||
                    metric == BlockMetric::other_class_goodput;
  if (rate) return significant(value / 1e9) + " Gb/s";
  return is_share(metric) ? significant(value * 100) + " %" : significant(value);
}

std::string effect_words(BlockMetric metric, double effect) {
  if (!std::isfinite(effect)) return "-";
  if (info(metric).scale != Scale::difference) return fmt::format("{:+.2f} %", 100 * effect);
  return is_share(metric) ? fmt::format("{:+.4g} pp", 100 * effect)
                          : fmt::format("{:+.4g}", effect);
}

std::string interval_words(BlockMetric metric, const Interval& effects) {
  if (!std::isfinite(effects.low) && !std::isfinite(effects.high)) return "-";
  return fmt::format("[{}, {}]", effect_words(metric, effects.low),
                     effect_words(metric, effects.high));
}

}  // namespace paceline::experiment::live
