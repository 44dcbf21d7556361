// Process groups of Chakra traces, JSON { "name": [ranks] }.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::workload {

using ChakraGroups = std::map<std::string, std::vector<std::uint32_t>>;

// `ranks`: how many there are.
config::Read<ChakraGroups> parse_chakra_groups(std::string_view text, const std::string& source,
                                               std::uint32_t ranks);

}  // namespace paceline::workload
