#include "tools/plugin/cc_plugin_command.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "cc/plugin/plugin.h"
#include "cc/registry.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/driver/scenario/plugin_watch.h"
#include "tools/cli/cli.h"
#include "tools/plugin/plugin_check.h"

namespace paceline::tools {

cc::Registered algorithm_of(const std::string& name) {
  constexpr std::string_view kPrefix = "plugin:";
  const std::string_view text(name);
  const bool prefixed = text.substr(0, kPrefix.size()) == kPrefix;
  if (prefixed || text.find('/') != std::string_view::npos || text.ends_with(".so")) {
    return load_plugin(prefixed ? name.substr(kPrefix.size()) : name);
  }
  if (const cc::AlgorithmInfo* info = cc::find(name)) return {info, {}};
  std::vector<std::string_view> names;
  for (const cc::AlgorithmInfo& info : cc::algorithms()) names.push_back(info.name);
  const std::string_view near = config::nearest_name(name, names);
  return {nullptr,
          fmt::format("no algorithm '{}'; {}", name,
                      near.empty() ? "allowed is " + config::list_names(names) + ", or FILE.so"
                                   : fmt::format("the nearest is '{}'", near))};
}

int run_cc_new(std::ostream& out, std::ostream& err, const std::string& name, PluginKind kind,
               const std::string& folder) {
  namespace fs = std::filesystem;
  if (const std::string wrong = plugin_name_error(name); !wrong.empty()) {
    err << fmt::format("paceline: error: name '{}': {}\n", name, wrong);
    return kExitBadInput;
  }
  const fs::path root = folder.empty() ? fs::path(name) : fs::path(folder);
  std::error_code error;
  if (fs::exists(root, error)) {
    err << fmt::format("paceline: error: {}: exists already\n", root.string());
    return kExitBadInput;
  }
  if (!fs::create_directories(root, error) || error) {
    err << fmt::format("paceline: error: {}: {}\n", root.string(), error.message());
    return kExitBadInput;
  }
  for (const SkeletonFile& file : plugin_skeleton(name, kind)) {
    std::ofstream stream(root / file.name, std::ios::binary);
    stream << file.text;
    stream.close();
    if (!stream) {
      err << fmt::format("paceline: error: {}: cannot be written\n", (root / file.name).string());
      return kExitBadInput;
    }
    out << (root / file.name).string() << "\n";
  }
  out << fmt::format(
      "\nBuild and test it:\n  cmake -S {0} -B {0}/build && cmake --build {0}/build && ctest "
      "--test-dir {0}/build\nRun it:\n  paceline emulate --set "
      "cc.algorithm=plugin:{0}/build/{1}.so\n",
      root.string(), name);
  return kExitGood;
}

int run_cc_check(std::ostream& out, std::ostream& err, const std::string& path, bool with_cost) {
  const cc::Registered loaded = load_plugin(path);
  if (loaded.info == nullptr) {
    err << fmt::format("paceline: error: {}\n", loaded.error);
    return kExitBadInput;
  }
  const cc::AlgorithmInfo& info = *loaded.info;
  const PluginTimeLimit limit;
  out << fmt::format("{}: {}\n{} parameters, {} profiles\n\n", info.name, info.summary,
                     info.params.size(), info.profiles.size());
  std::size_t failed = 0;
  for (const CheckResult& result : check_plugin(info)) {
    out << fmt::format("{}  {}\n", result.problem.empty() ? "ok  " : "FAIL", result.name);
    if (result.problem.empty()) continue;
    ++failed;
    out << fmt::format("      {}\n", result.problem);
  }
  if (with_cost) {
    const EventCost cost = event_cost(info);
    out << fmt::format("\ncost  {:.1f} ns per event; built-in dcqcn {:.1f} ns; ratio {:.2f}\n",
                       cost.plugin_ns, cost.built_in_ns, cost.ratio);
    if (cc::plugin_of(info.id)->table.receiver != nullptr) {
      const EventCost round = round_cost(info);
      out << fmt::format(
          "cost  {:.1f} ns per round of {} senders; built-in homa {:.1f} ns; ratio {:.2f}\n",
          round.plugin_ns, kCostSenders, round.built_in_ns, round.ratio);
    }
  }
  return failed == 0 ? kExitGood : kExitFailed;
}

}  // namespace paceline::tools
