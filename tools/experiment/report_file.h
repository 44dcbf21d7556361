// The page of a report as a file; shared by `paceline report` and `paceline ab`.
#pragma once

#include <string>
#include <string_view>

#include "control/experiment/results/results_file.h"

namespace paceline::tools {

// The default place of the page of a results file: beside it.
std::string report_name(const std::string& results);

// Throws experiment::ResultsFileError. `results_name`: of the results file, for the commands.
void write_report(const std::string& path, const experiment::Results& results,
                  const experiment::Analysis& analysis, const std::string& results_name);

// "report: FILE (123 KB)", and a line where the page is without charts.
std::string written_text(const std::string& path);

}  // namespace paceline::tools
