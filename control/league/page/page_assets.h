// Style and scripts of control/league/page, which the build puts into the program.
#pragma once

#include <string_view>

namespace paceline::league {

std::string_view league_style();
std::string_view league_script();

}  // namespace paceline::league
