// Charts of a live report as SVG, with the classes of the report's style sheet. For live_page.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "control/experiment/live/analysis/analysis.h"

namespace paceline::experiment::live {

// The effect on the primary metric with its confidence sequence, pair by pair, in percent where it
// is a share. Empty without two pairs.
std::string course_chart(BlockMetric metric, std::span<const SequencePoint> course,
                         std::uint32_t least_pairs);

// The primary metric of every block in the order of time, coloured by arm; discarded ones below.
std::string blocks_chart(BlockMetric metric, std::span<const BlockRecord> records,
                         const std::vector<std::string>& arms);

}  // namespace paceline::experiment::live
