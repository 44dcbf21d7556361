// The daemon's answers about parameters and their journal, as text for people.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace paceline::tools {

// The answer to GET /v1/params. NICs with the same parameters are shown together. Only the
// parameters in `names`; all if it is empty.
std::string params_text(const nlohmann::json& answer, std::span<const std::string> names);
// The answer to GET /v1/params/history: a paragraph per change, the oldest first.
std::string params_history_text(const nlohmann::json& answer);
// The answer to a change: its outcome for each NIC.
std::string params_change_text(const nlohmann::json& answer);

// Words "NAME=VALUE" as an object of numbers. Adds an error for each word that is not one.
nlohmann::json assignments(std::span<const std::string> words, std::vector<std::string>& errors);

}  // namespace paceline::tools
