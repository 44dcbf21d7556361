// The analysis for people: what `paceline ab` prints. Plain ASCII unless asked otherwise, verdicts
// in words, losses named as plainly as wins.
#pragma once

#include <string>

#include "control/experiment/analysis/effects.h"

namespace paceline::experiment {

struct TableOptions {
  bool color = false;        // ANSI colours on the verdict, in addition to the words
  bool all_metrics = false;  // otherwise the headline metrics
};

// At most 110 columns wide as long as scenario, arm and metric names are of ordinary length.
std::string format_table(const Analysis& analysis, const TableOptions& options);

std::string format_markdown(const Analysis& analysis, const TableOptions& options);

}  // namespace paceline::experiment
