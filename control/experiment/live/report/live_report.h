// The report of a live experiment: as JSON for programs, and as one page for people that opens from
// disk, needs no network and no script, and draws its charts as SVG.
#pragma once

#include <span>
#include <string>

#include "control/experiment/live/analysis/analysis.h"

namespace paceline::experiment::live {

struct LiveReport {
  const Plan& plan;
  const Schedule& schedule;
  std::span<const BlockRecord> records;
  const Circumstances& circumstances;
  const LiveAnalysis& analysis;
  std::string version;  // of the program
  std::string replay;   // the command that makes the analysis again from the files
};

// Schema 1. Figures keep six digits, so that the file is the same everywhere (number_text.h).
std::string live_report_json(const LiveReport& report);
std::string live_report_page(const LiveReport& report);

}  // namespace paceline::experiment::live
