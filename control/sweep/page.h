// The page of a sweep: one self-contained file with small multiples, a panel for each metric, and a
// table of all points. Opens from disk and asks no network for anything.
#pragma once

#include <cstddef>
#include <string>

#include "control/sweep/results.h"

namespace paceline::sweep {

// A page with more points is nothing that a browser draws, or anybody reads.
inline constexpr std::size_t kMostPagePoints = 5'000;

// `text`: what write_json writes. The same results give the same page.
std::string sweep_page(const Results& results, const std::string& text);

}  // namespace paceline::sweep
