// The findings of a tuner of collectives, for people and as JSON.
#pragma once

#include <string>

#include "tools/collective/tune/collective_tune.h"

namespace paceline::tools {

std::string collective_tune_text(const CollectiveTunePlan& plan,
                                 const CollectiveTuneResult& result);
std::string collective_tune_json(const CollectiveTunePlan& plan,
                                 const CollectiveTuneResult& result);

// Why the schedule of a cell is the fastest: the model's estimate of each, and the times of the
// kept ones.
std::string explain_text(const CollectiveTunePlan& plan, const CollectiveTuneResult& result);

// The reason in one sentence.
std::string reason_of(const TuneCell& cell);

}  // namespace paceline::tools
