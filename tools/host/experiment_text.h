// Plans, progress and reports of live experiments, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "control/experiment/live/plan/plan.h"
#include "control/experiment/live/plan/schedule.h"

namespace paceline::tools {

// Plan of the experiment: arms, NICs, blocks and their duration, the schedule and its digest,
// guards, and the effects that it can detect.
std::string experiment_plan_text(const experiment::live::Plan& plan,
                                 const experiment::live::Schedule& schedule);
// Text for GET /v1/experiments/{id}.
std::string experiment_status_text(const nlohmann::json& experiment);
// Text for GET /v1/experiments: a line each.
std::string experiment_list_text(const nlohmann::json& answer);
// Text for report.json.
std::string experiment_report_text(const nlohmann::json& report);
// Text for progress.estimate: "p99_short -12.30 % [-14.00 %, -10.10 %]".
std::string estimate_text(const nlohmann::json& estimate);

}  // namespace paceline::tools
