// Files of tests/plugin/aimd, as they are (cmake/PacelineEmbed.cmake).
#pragma once

#include <string_view>

namespace paceline::tools {

std::string_view skeleton_c();
std::string_view skeleton_cpp();
std::string_view skeleton_test();
std::string_view skeleton_cmake();

}  // namespace paceline::tools
