// What the guard of a running host says, for people.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace paceline::tools {

// Of the answer to GET /v1/guard.
std::string guard_status_text(const nlohmann::json& answer);

}  // namespace paceline::tools
