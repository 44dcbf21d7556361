// A plan file (TOML) to a plan. All errors of a file, each as "file:line:column: what, value, what
// is allowed"; with any there is no plan. docs/experiments.md has the reference.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "cc/algorithm.h"
#include "control/experiment/live/plan.h"
#include "dataplane/config/diagnostics.h"

namespace paceline::experiment::live {

// `algorithms`: what an [[arm]] may name.
config::Read<Plan> read_plan_text(std::string_view text, const std::string& source,
                                  std::span<const cc::AlgorithmInfo> algorithms);
config::Read<Plan> read_plan_file(const std::string& path,
                                  std::span<const cc::AlgorithmInfo> algorithms);

}  // namespace paceline::experiment::live
