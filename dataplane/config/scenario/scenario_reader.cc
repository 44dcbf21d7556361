#include "dataplane/config/scenario/scenario_reader.h"

#include <fmt/format.h>

#include <utility>

#include "dataplane/config/scenario/document.h"

namespace paceline::config {

void read_scenario_root(TomlNode& root, Scenario& out, const std::string& folder,
                        const ReaderOptions& options, Diagnostics& errors) {
  for (const Override& o : split_overrides(options.overrides, errors)) {
    apply_override(root, o.path, o.value, errors);
  }
  forgive_replaced_choices(root);
  ReadContext context{options.algorithms, folder, &errors, options.load_plugin};
  std::vector<std::string_view> elsewhere{"schema", "cc"};
  for (const std::string_view key : {"arm", "scenario", "common", "repetitions", "confidence"}) {
    if (const TomlMember* m = root.find(key)) {
      errors.add(m->where, fmt::format("{} belongs to an experiment file, for `paceline ab`", key));
      elsewhere.push_back(key);
    }
  }
  GivenKeys given;
  read_scenario_table(root, elsewhere, out, given, context);
  if (const TomlMember* m = root.find("cc")) {
    if (m->value.is_table()) {
      read_cc_table(m->value, "cc", {}, out.cc, context);
    } else {
      errors.add(m->where, "expected a table, [cc]");
    }
  }
  imply(out, given);
  check_scenario(out, given, root.where, context);
  if (const TomlMember* m = root.find("cc"); m != nullptr && m->value.is_table()) {
    check_cc_needs(out, out.cc, m->value, "cc", context);
  }
}

Read<Scenario> read_scenario_text(std::string_view text, const std::string& source,
                                  const std::string& folder, const ReaderOptions& options) {
  Scenario start;
  start.name = default_name(source, start.name);
  return read_document(text, source, std::move(start),
                       [&](TomlNode& root, Scenario& out, Diagnostics& errors) {
                         read_scenario_root(root, out, folder, options, errors);
                       });
}

Read<Scenario> read_scenario_file(const std::string& path, const ReaderOptions& options) {
  const Read<std::string> text = read_text_file(path, kLongestDocument);
  if (!text.ok()) return {{}, text.errors};
  // Every key has a default, but the author of an empty file did not mean that.
  if (text.value.find_first_not_of(" \t\r\n") == std::string::npos) {
    return {{}, {fmt::format("{}:1:1: the file is empty; expected a scenario", path)}};
  }
  return read_scenario_text(text.value, path, folder_of(path), options);
}

}  // namespace paceline::config
