// Sizes as a command line names them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

// "1MiB", or "4KiB..64MiB", each four times the last, or "4KiB..64MiB step x2". Errors begin with
// `option`.
config::Read<std::vector<std::uint64_t>> parse_size_range(const std::string& option,
                                                          const std::string& text);

}  // namespace paceline::tools
