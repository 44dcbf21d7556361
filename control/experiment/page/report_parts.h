// The parts of a report page: tables, figures, sections. Used by report_page.cc only.
#pragma once

#include <string>

#include "control/experiment/results/reproduce.h"
#include "control/experiment/results/results_file.h"

namespace paceline::experiment {

struct PageContext {
  const Results& results;
  const Analysis& analysis;
  const Reproduce& reproduce;
};

// A figure that a script fills: `kind` names the drawing function, `scenario` is the index in the
// plan or -1. `caption` is markup; `commands` reproduce it, one a line.
struct Figure {
  std::string id;
  std::string kind;
  int scenario = -1;
  std::string title;
  std::string caption;
  std::vector<std::string> commands;
  bool wide = false;
};
std::string figure_html(const Figure& figure);

// The effects of one scenario and arm. `all`: every metric, otherwise the headlines.
std::string effect_table(const Comparison& comparison, const AnalysisPlan& plan, bool all);
// Primary metrics and summaries of the whole experiment.
std::string overview_table(const Analysis& analysis);
// Control overhead, losses, pauses and signals of every arm; what its senders were limited by.
std::string costs_table(const PageContext& page);
std::string limits_table(const PageContext& page);

std::string scenario_section(const PageContext& page, std::size_t index);
std::string anchor_of(std::size_t scenario);
std::string verdict_class(Verdict verdict);  // "better", "worse", "neutral"

}  // namespace paceline::experiment
