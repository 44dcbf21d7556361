// The topics of /v1/events.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::daemon {

inline constexpr std::array<std::string_view, 7> kTopics{
    "sample", "parameters", "guard", "trial", "experiment", "tuner", "dataplane"};

// Splits "sample,trial"; an empty list asks for all topics. Returns an error, or an empty text.
std::string read_topics(std::string_view list, std::vector<std::string>& out);

}  // namespace paceline::daemon
