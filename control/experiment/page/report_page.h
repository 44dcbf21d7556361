// The results of an experiment as one self-contained page: it opens from disk, loads nothing from
// the network (its content security policy forbids it), and holds the results file it was made
// from. Tables and sentences are written here, so that they are there without scripts; the scripts
// of control/experiment/page draw the charts into the figures.
#pragma once

#include <string>

#include "control/experiment/results/results_file.h"

namespace paceline::experiment {

// `analysis` must be analyse(results.runs, results.plan). `results_name` is what the commands on
// the page call the results file. The same results give the same page.
std::string report_page(const Results& results, const Analysis& analysis,
                        const std::string& results_name);

}  // namespace paceline::experiment
