// Verdicts as sentences: which arm wins, by how much, how certain that is, and where it loses.
#pragma once

#include <string>

#include "control/experiment/analysis/effects.h"

namespace paceline::experiment {

struct VerdictWords {
  Verdict verdict = Verdict::too_few;
  std::string sentence;  // about the primary metric
  std::string losses;    // what else is worse; "" if nothing is
};

VerdictWords verdict_words(const Comparison& comparison, const AnalysisPlan& plan);

}  // namespace paceline::experiment
