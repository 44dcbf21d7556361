// Sections of the page of a league.
#pragma once

#include <string>

#include "control/league/results.h"

namespace paceline::league {

std::string standings_html(const Results& results);
// The entries: profile, parameters, tuning.
std::string entries_html(const Results& results);
// Every scenario with its text, its settings and a table of figures.
std::string scenarios_html(const Results& results);

}  // namespace paceline::league
