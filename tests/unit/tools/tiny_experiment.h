// An experiment of two arms and two scenarios whose runs take milliseconds.
#pragma once

#include <string_view>

namespace paceline::tools {

inline constexpr std::string_view kTinyExperiment = R"(schema = 1
name = "tiny"
seed = 3
repetitions = 3
[[arm]]
name = "dcqcn"
algorithm = "dcqcn"
profile = "paper"
[[arm]]
name = "cadence"
algorithm = "cadence"
[common.fabric]
hosts = 4
[[scenario]]
name = "incast"
workload = { kind = "incast", fan_in = 3, message_bytes = "200kB", start_jitter = "1us" }
[[scenario]]
name = "moe"
workload = { kind = "all_to_all", message_bytes = "50kB", skew = 1.0, start_jitter = "5us" }
)";

}  // namespace paceline::tools
