#include "tools/plugin/plugin_skeleton.h"

#include <algorithm>

#include "cc/registry.h"
#include "tools/plugin/plugin_texts.h"

namespace paceline::tools {
namespace {

constexpr std::string_view kExample = "aimd";
constexpr std::string_view kReceiverExample = "creditor";
constexpr std::string_view kRatesExample = "cadence_c";  // in cadence.c
constexpr std::size_t kLongestName = 31;

std::string replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (;;) {
    const std::size_t at = text.find(from);
    out += text.substr(0, at);
    if (at == std::string_view::npos) return out;
    out += to;
    text.remove_prefix(at + from.size());
  }
}

}  // namespace

std::string plugin_name_error(std::string_view name) {
  const bool spelled = !name.empty() && name.size() <= kLongestName && name[0] >= 'a' &&
                       name[0] <= 'z' && std::all_of(name.begin(), name.end(), [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                       });
  if (!spelled) return "allowed is [a-z][a-z0-9_]*, 31 characters";
  if (cc::find(name) != nullptr) return "an algorithm of that name is built in";
  return {};
}

std::vector<SkeletonFile> plugin_skeleton(std::string_view name, PluginKind kind) {
  const std::string own(name);
  if (kind == PluginKind::receiver) {
    return {{own + ".c", replaced(skeleton_receiver(), kReceiverExample, name)},
            {own + "_test.c", replaced(skeleton_receiver_test(), kReceiverExample, name)},
            {"CMakeLists.txt", replaced(skeleton_receiver_cmake(), kReceiverExample, name)}};
  }
  if (kind == PluginKind::rates) {
    const std::string cmake = replaced(skeleton_rates_cmake(), kRatesExample, name);
    return {{own + ".c", replaced(skeleton_rates(), kRatesExample, name)},
            {own + "_test.c", replaced(skeleton_rates_test(), kRatesExample, name)},
            {"CMakeLists.txt", replaced(cmake, "cadence", name)}};
  }
  const bool c = kind == PluginKind::c;
  std::string cmake = replaced(skeleton_cmake(), kExample, name);
  if (!c) {
    cmake = replaced(cmake, "LANGUAGES C)", "LANGUAGES C CXX)");
    cmake = replaced(cmake, own + ".c)", own + ".cc)");
    cmake = replaced(cmake, own + ".c " + own + "_test.c)", own + ".cc " + own + "_test.c)");
  }
  return {{own + (c ? ".c" : ".cc"), replaced(c ? skeleton_c() : skeleton_cpp(), kExample, name)},
          {own + "_test.c", replaced(skeleton_test(), kExample, name)},
          {"CMakeLists.txt", cmake}};
}

}  // namespace paceline::tools
