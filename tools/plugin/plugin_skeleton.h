// Output of `paceline cc new`: a worked example of tests/plugin under another name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::tools {

// The last two, with a receiving half and with rates, are in C.
enum class PluginKind : std::uint8_t { c, cpp, receiver, rates };

struct SkeletonFile {
  std::string name;  // within the folder
  std::string text;
};

// Empty, or why a plug-in cannot be called that.
std::string plugin_name_error(std::string_view name);

// Algorithm, test and CMakeLists.txt. `name` is good.
std::vector<SkeletonFile> plugin_skeleton(std::string_view name, PluginKind kind);

}  // namespace paceline::tools
