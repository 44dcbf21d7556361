// Texts of control/sweep/page and what it draws with, put into the program when it is built.
#pragma once

#include <string_view>

namespace paceline::sweep {

std::string_view sweep_style();
std::string_view sweep_script();

}  // namespace paceline::sweep
