// Charts of a diagnosis as SVG, with the classes of the reports' style sheet. For
// diagnosis_page.cc.
#pragma once

#include <string>
#include <vector>

#include "control/diagnosis/evidence.h"

namespace paceline::tools {

// How slow the messages between each pair of these NICs are, as a square of cells.
std::string matrix_chart(const diagnosis::Evidence& evidence, const std::vector<std::size_t>& nics);

// The counts of queue pairs over time: those that a culprit concerns against the others. `culprit`
// is named as in a verdict; empty: all are others.
std::string timeline_chart(const diagnosis::Evidence& evidence, const std::string& culprit);

}  // namespace paceline::tools
