// Reads a plan file (TOML). Reports all errors of a file, each as "file:line:column: what, value,
// what is allowed"; a file with errors gives no plan. docs/experiments.md has the reference.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "cc/registry.h"
#include "control/experiment/live/plan/plan.h"
#include "dataplane/config/algorithm_catalogue.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::experiment::live {

// `algorithms`: what an [[arm]] may name. `plugins` gets the PATH of "plugin:PATH", which must be
// absolute, because another process runs the plan. Without `plugins` no plug-in is accepted.
using PluginFinder = std::function<cc::Registered(const std::string& path)>;
config::Read<Plan> read_plan_text(std::string_view text, const std::string& source,
                                  std::span<const cc::AlgorithmInfo> algorithms,
                                  const PluginFinder& plugins = {});
config::Read<Plan> read_plan_file(const std::string& path,
                                  std::span<const cc::AlgorithmInfo> algorithms,
                                  const PluginFinder& plugins = {});
// The paths of the plug-ins that a plan's arms name, each once, in their order. None if the text is
// no plan.
std::vector<std::string> plugin_paths(std::string_view text);
// Notes in the plan which code its arms run, for the digest.
void note_plugins(Plan& plan, const config::AlgorithmCatalogue& catalogue);

}  // namespace paceline::experiment::live
