// Parts of a report page besides its results: texts of control/experiment/page and the chart
// library, embedded at build time (control/experiment/CMakeLists.txt).
#pragma once

#include <string_view>

namespace paceline::experiment {

std::string_view page_style();
std::string_view page_script();
std::string_view page_chart_licence();
// D3, minified; empty where it was not installed when the program was built.
std::string_view page_chart_library();

}  // namespace paceline::experiment
