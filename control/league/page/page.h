// The page of a league: one self-contained file that opens from disk and loads nothing from the
// network. Tables and texts are written here, so that they are there without scripts; the script of
// control/league/page draws the heat map and the courses from the results inside the page.
#pragma once

#include <string>

#include "control/league/results.h"

namespace paceline::league {

// `text` must be results_text(results). The same results give the same page.
std::string league_page(const Results& results, const std::string& text);

}  // namespace paceline::league
