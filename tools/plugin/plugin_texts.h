// Files of tests/plugin/aimd, creditor and cadence, as they are (cmake/PacelineEmbed.cmake).
#pragma once

#include <string_view>

namespace paceline::tools {

std::string_view skeleton_c();
std::string_view skeleton_cpp();
std::string_view skeleton_test();
std::string_view skeleton_cmake();
std::string_view skeleton_receiver();
std::string_view skeleton_receiver_test();
std::string_view skeleton_receiver_cmake();
std::string_view skeleton_rates();
std::string_view skeleton_rates_test();
std::string_view skeleton_rates_cmake();

}  // namespace paceline::tools
