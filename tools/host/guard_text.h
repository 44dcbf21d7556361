// State of a running host's guard as text.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace paceline::tools {

// Text for the answer to GET /v1/guard.
std::string guard_status_text(const nlohmann::json& answer);

}  // namespace paceline::tools
