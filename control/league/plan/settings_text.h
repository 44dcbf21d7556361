// Tables of a TOML file as the words of `--set`.
#pragma once

#include <string>
#include <vector>

#include "dataplane/config/toml/toml_tree.h"

namespace paceline::league {

// "fabric.ecn.kmin=200kB", one per value, in the order of the keys. Each reads back through
// config::parse_override_value as the value that it came from.
std::vector<std::string> settings_of(const config::TomlNode& table);

}  // namespace paceline::league
