// What reading a scenario file and reading an experiment file share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/config/table_reader.h"
#include "dataplane/config/toml_tree.h"

namespace paceline::config {

inline constexpr std::size_t kLongestDocument = 1 << 20;

// One "--set key=value".
struct Override {
  std::string path;
  TomlNode value;
};

std::vector<Override> split_overrides(const std::vector<std::string>& texts, Diagnostics& errors);

void apply_override(TomlNode& root, std::string_view path, const TomlNode& value,
                    Diagnostics& errors);

// With generator or topology changed from the command line, the file's keys for another one are no
// mistake.
void forgive_replaced_choices(TomlNode& scenario);

// False (and an error) when the document is of a version that this program does not know.
bool check_schema(const TomlNode& root, std::uint32_t& schema, Diagnostics& errors);

// Choices that another key makes: a topology file, a CDF file, a flow list.
void imply(Scenario& scenario, const GivenKeys& given);

// A name from the file's.
std::string default_name(const std::string& source, std::string_view otherwise);

std::string folder_of(const std::string& path);

}  // namespace paceline::config
