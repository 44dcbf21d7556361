// The results of a league: a file (JSON, schema 1) and a table for the terminal. Holds no
// wall-clock time, host or speed: the same league gives the same bytes with any --jobs, interrupted
// or not.
#pragma once

#include <string>
#include <vector>

#include "control/league/cell.h"
#include "control/league/plan/plan.h"
#include "control/league/standings.h"

namespace paceline::league {

inline constexpr std::string_view kLeagueKind = "paceline league results";

struct Results {
  std::string version;  // experiment::kResultsVersion
  std::string command;  // that repeats the league
  Plan plan;
  std::vector<std::uint64_t> seeds;  // by repetition
  std::vector<Cell> cells;
  Standings standings;
};

// Cells and standings from runs (see cells_of).
Results results_of(Plan plan, const std::vector<Run>& runs);

std::string results_text(const Results& results);

// Ranks by scenario, then how entries stand.
std::string format_league(const Results& results);

// A value as people read it, with its unit: "93.1 %", "1.21 MB". "-" for NaN.
std::string value_words(Measure measure, double value);

}  // namespace paceline::league
