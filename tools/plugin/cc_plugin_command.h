// `paceline cc new` and `paceline cc check`: start a plug-in, and check that it is fit to run.
#pragma once

#include <ostream>
#include <string>

#include "cc/registry.h"
#include "tools/plugin/plugin_skeleton.h"

namespace paceline::tools {

// Writes a folder; exit code 0, or 2 with the reason on `err` (a bad name, an existing folder).
int run_cc_new(std::ostream& out, std::ostream& err, const std::string& name, PluginKind kind,
               const std::string& folder);

// Exit code 0: all good; 1: a check failed; 2: not to be loaded.
int run_cc_check(std::ostream& out, std::ostream& err, const std::string& path, bool with_cost);

// An algorithm by its name, or a plug-in by the path of its file: "plugin:PATH", or a text that has
// a '/' or ends in ".so". Otherwise the reason.
cc::Registered algorithm_of(const std::string& name);

}  // namespace paceline::tools
