// What `paceline diagnose` says, for people and for machines.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"

namespace paceline::tools {

// The verdicts, then from whom to whom messages are slow.
std::string diagnosis_text(const diagnosis::Evidence& evidence,
                           const std::vector<diagnosis::Verdict>& verdicts);

// schema 1, stable key order.
std::string diagnosis_json(const std::string& scenario, std::uint64_t seed,
                           const diagnosis::Evidence& evidence,
                           const std::vector<diagnosis::Verdict>& verdicts);

}  // namespace paceline::tools
