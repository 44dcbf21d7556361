// The analysis for people: what `paceline ab` prints. Plain ASCII unless asked otherwise, verdicts
// in words, losses named as plainly as wins.
#pragma once

#include <string>
#include <vector>

#include "control/experiment/effects.h"

namespace paceline::experiment {

struct TableOptions {
  bool color = false;        // ANSI colours on the verdict, in addition to the words
  bool all_metrics = false;  // otherwise the headline metrics
};

// At most 110 columns wide as long as scenario, arm and metric names are of ordinary length.
std::string format_table(const Analysis& analysis, const TableOptions& options);

// One line per scenario and arm with the primary metric, then the summaries.
std::vector<std::string> summary_lines(const Analysis& analysis);

std::string format_markdown(const Analysis& analysis, const TableOptions& options);

}  // namespace paceline::experiment
