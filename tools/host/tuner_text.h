// The tuner as the daemon tells it, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace paceline::tools {

// Text for GET /v1/tuner.
std::string tuner_text(const nlohmann::json& answer);
// Text for GET /v1/tuner/journal: one paragraph per entry, oldest first.
std::string tuner_journal_text(const nlohmann::json& answer);

}  // namespace paceline::tools
