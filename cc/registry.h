// The built-in algorithms, as static tables.
#pragma once

#include <span>
#include <string_view>

#include "cc/algorithm.h"

namespace paceline::cc {

// In the order of AlgorithmId. Lives as long as the program.
std::span<const AlgorithmInfo> algorithms();

// The algorithm of that name, or nullptr.
const AlgorithmInfo* find(std::string_view name);

// The algorithm of that id, or nullptr for a number that is none.
const AlgorithmInfo* find(AlgorithmId id);

// For error messages: the algorithm name nearest to what was asked for.
std::string_view nearest_algorithm(std::string_view name);

}  // namespace paceline::cc
