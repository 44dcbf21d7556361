// A diagnosis as a page: verdicts, the matrix of ranks' NICs, the course of time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "control/diagnosis/verdict.h"

namespace paceline::tools {

// One file that opens from disk and asks no network for anything. `name`: of the scenario or the
// testbed.
std::string diagnosis_page(const std::string& name, std::uint64_t seed,
                           const diagnosis::Evidence& evidence,
                           const std::vector<diagnosis::Verdict>& verdicts);

}  // namespace paceline::tools
