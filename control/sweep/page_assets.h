// Style and scripts of control/sweep/page, which the build puts into the program.
#pragma once

#include <string_view>

namespace paceline::sweep {

std::string_view sweep_style();
std::string_view sweep_script();

}  // namespace paceline::sweep
