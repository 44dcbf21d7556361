// Shared by the readers of scenario files and experiment files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/toml/toml_tree.h"

namespace paceline::config {

inline constexpr std::size_t kLongestDocument = 1 << 20;

// One "--set key=value".
struct Override {
  std::string path;
  TomlNode value;
};

std::vector<Override> split_overrides(const std::vector<std::string>& texts, Diagnostics& errors);

// Sets the key `path` to `value`. If that replaces the file's algorithm by another one, the file's
// parameters of the algorithm are removed.
void apply_override(TomlNode& root, std::string_view path, const TomlNode& value,
                    Diagnostics& errors);

// If the command line changes the generator or the topology, the file's keys for another one are
// not mistakes.
void forgive_replaced_choices(TomlNode& scenario);

// False (and an error) when the document is of a version that this program does not know.
bool check_schema(const TomlNode& root, std::uint32_t& schema, Diagnostics& errors);

// Parses `text`, checks its schema and has `read(root, value, errors)` fill `value`, which it hands
// back with all errors in the order of their places.
template <class T, class ReadRoot>
Read<T> read_document(std::string_view text, const std::string& source, T value, ReadRoot read) {
  Read<T> out;
  out.value = std::move(value);
  Read<TomlNode> parsed = parse_toml(text, source);
  if (!parsed.ok()) {
    out.errors = std::move(parsed.errors);
    return out;
  }
  parsed.value.where = {source, 1, 1};
  Diagnostics errors;
  if (check_schema(parsed.value, out.value.schema, errors)) read(parsed.value, out.value, errors);
  out.errors = errors.sorted();
  return out;
}

// A whole scenario, its [cc] included, from a tree that is parsed already: a file's, or one put
// together of several (control/league). `out` begins with its defaults; options.overrides come
// last.
void read_scenario_root(TomlNode& root, Scenario& out, const std::string& folder,
                        const ReaderOptions& options, Diagnostics& errors);

// Choices that another key makes: a topology file, a CDF file, a flow list.
void imply(Scenario& scenario, const GivenKeys& given);
// The same for transport.planes alone.
void imply_planes(Scenario& scenario, const GivenKeys& given);

// A name derived from the file's name.
std::string default_name(const std::string& source, std::string_view otherwise);

std::string folder_of(const std::string& path);

}  // namespace paceline::config
