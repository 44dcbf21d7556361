// The output of `paceline diagnose`: text and JSON.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"

namespace paceline::tools {

// The NICs with the slowest messages, at most this many, in ascending order.
std::vector<std::size_t> slowest_nics(const diagnosis::Evidence& evidence, std::size_t most);

// The verdicts, then the matrix of slow messages between NICs.
std::string diagnosis_text(const diagnosis::Evidence& evidence,
                           const std::vector<diagnosis::Verdict>& verdicts);

nlohmann::ordered_json verdicts_json(const std::vector<diagnosis::Verdict>& verdicts);
// JSON, schema 1; the order of keys is fixed.
std::string diagnosis_json(const std::string& scenario, std::uint64_t seed,
                           const diagnosis::Evidence& evidence,
                           const std::vector<diagnosis::Verdict>& verdicts);

}  // namespace paceline::tools
