// Texts of control/league/page and what it draws with, put into the program when it is built.
#pragma once

#include <string_view>

namespace paceline::league {

std::string_view league_style();
std::string_view league_script();

}  // namespace paceline::league
