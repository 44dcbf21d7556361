// Parameters and their journal as the daemon tells them, for people.
#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

namespace paceline::tools {

// Of GET /v1/params. NICs with the same parameters stand together; `names`: these parameters only,
// empty: all.
std::string params_text(const nlohmann::json& answer, std::span<const std::string> names);
// Of GET /v1/params/history: a paragraph a change, the oldest first.
std::string params_history_text(const nlohmann::json& answer);
// Of a change: what became of it, by NIC.
std::string params_change_text(const nlohmann::json& answer);

// "NAME=VALUE" ... as an object of numbers. Errors, one for each that is none.
nlohmann::json assignments(std::span<const std::string> words, std::vector<std::string>& errors);

}  // namespace paceline::tools
