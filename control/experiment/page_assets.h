// What a report page is made of besides its results: texts of control/experiment/page and the chart
// library, put into the program when it is built (CMakeLists.txt of this folder).
#pragma once

#include <string_view>

namespace paceline::experiment {

std::string_view page_style();
std::string_view page_script();
std::string_view page_chart_licence();
// D3, minified; empty where it was not installed when the program was built.
std::string_view page_chart_library();

}  // namespace paceline::experiment
