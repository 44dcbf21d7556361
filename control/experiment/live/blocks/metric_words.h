// Figures of live experiments as people read them, on the page and in a terminal: effects of ratios
// in per cent, of shares in points, other differences in the metric's own unit; "-" for what is not
// known.
#pragma once

#include <string>

#include "control/experiment/live/blocks/block_metrics.h"

namespace paceline::experiment::live {

std::string value_words(BlockMetric metric, double value);
// `effect` as effect_of gives it.
std::string effect_words(BlockMetric metric, double effect);
// "[-1.20 %, +3.40 %]"; "-" where neither end is known.
std::string interval_words(BlockMetric metric, const Interval& effects);

}  // namespace paceline::experiment::live
