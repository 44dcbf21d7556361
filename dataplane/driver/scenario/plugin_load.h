// Loads congestion-control plug-ins: the only place that opens shared objects for them. A loaded
// plug-in stays for the life of the process: contexts point into it.
#pragma once

#include <string>
#include <string_view>

#include "cc/plugin/guard.h"
#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"

namespace paceline {

// The algorithm in the shared object at `path` (the path of a file, never searched for), registered
// with the others. Code of the shared object runs: load none that you would not run. The error
// begins with the path. A file whose content has changed since it was loaded is refused: the loaded
// one stays.
cc::Registered load_plugin(const std::string& path);

// The same for a content that the caller has read: it runs from a copy in memory, so that the file
// may be overwritten while it is in use. `path`, absolute and without links, is its name.
cc::Registered load_plugin_content(const std::string& path, std::string_view content);

// The options for all readers of scenario files that may name plug-ins: the algorithms known so
// far, and how to load more.
config::ReaderOptions reader_options();

// The clock by which an engine in real time times its plug-ins.
cc::plugin::Clock plugin_clock();

}  // namespace paceline
