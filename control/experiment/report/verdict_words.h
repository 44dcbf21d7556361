// Verdicts as sentences: who wins by how much, how sure that is, and where it loses.
#pragma once

#include <string>

#include "control/experiment/analysis/effects.h"

namespace paceline::experiment {

struct VerdictWords {
  Verdict verdict = Verdict::too_few;
  std::string sentence;  // about the primary metric
  std::string losses;    // what else is worse; "" where the arm has nothing else to answer for
};

VerdictWords verdict_words(const Comparison& comparison, const AnalysisPlan& plan);

}  // namespace paceline::experiment
