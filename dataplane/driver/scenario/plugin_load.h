// Loads congestion-control plug-ins: the one place that opens shared objects for that. What is
// loaded stays, for the life of the process: contexts point into it.
#pragma once

#include <string>
#include <string_view>

#include "cc/plugin/guard.h"
#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline {

// The algorithm in the shared object at `path` (of a file, never searched for), registered with the
// rest. Code of the shared object runs: load none that you would not run. The error begins with the
// path. A file whose content has changed since it was loaded is refused: what is loaded stays.
cc::Registered load_plugin(const std::string& path);

// The same from a content that the caller has read: it runs from a copy in memory, so that the file
// may be written over while it is in use. `path`, absolute and without links, is what it is called.
cc::Registered load_plugin_content(const std::string& path, std::string_view content);

// The options of everybody who reads scenario files and lets them name plug-ins: the algorithms
// there are by now, and how to load more.
config::ReaderOptions reader_options();

// The clock by which an engine in real time times its plug-ins.
cc::plugin::Clock plugin_clock();

}  // namespace paceline
