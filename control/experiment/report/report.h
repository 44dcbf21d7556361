// The analysis as rows and sentences, before any layout: the terminal table and the Markdown say
// the same things.
#pragma once

#include <string>
#include <vector>

#include "control/experiment/analysis/effects.h"

namespace paceline::experiment {

struct ReportRow {
  Role role{};
  std::string label;
  std::string baseline;
  std::string arm;
  std::string unit;
  std::string effect;
  std::string interval;
  std::string p;
  std::string verdict_text;
  Verdict verdict{};
};

struct ReportBlock {  // one scenario, one arm
  std::string title;
  std::string baseline_name;
  std::string arm_name;
  std::vector<ReportRow> rows;
  std::vector<std::string> remarks;  // what a reader must know to read the rows
};

struct Report {
  std::vector<std::string> heading;
  std::vector<ReportBlock> blocks;
  std::vector<std::string> legend;
  std::vector<std::string> summary;
  struct Losses {
    std::string arm;
    std::vector<std::string> lines;  // empty: every primary is better, and nothing worse
  };
  std::vector<Losses> losses;  // where each arm does not win, in plain words
  std::vector<std::string> notes;
};

ReportRow row_of(const MetricEffect& effect);
Report report_of(const Analysis& analysis, bool all_metrics);

// One line per scenario and arm with the primary metric, then the summaries.
std::vector<std::string> summary_of(const Analysis& analysis);
Report::Losses losses_of(const Analysis& analysis, const std::string& arm);

}  // namespace paceline::experiment
