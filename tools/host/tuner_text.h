// The tuner as the daemon tells it, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace paceline::tools {

// Of GET /v1/tuner.
std::string tuner_text(const nlohmann::json& answer);
// Of GET /v1/tuner/journal: an entry a paragraph, the oldest first.
std::string tuner_journal_text(const nlohmann::json& answer);

}  // namespace paceline::tools
