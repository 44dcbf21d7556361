#include "control/sweep/plan.h"

#include <fmt/format.h>

#include <algorithm>

#include "dataplane/config/scenario/document.h"

namespace paceline::sweep {

std::size_t Plan::points() const {
  std::size_t count = std::max<std::size_t>(list.size(), 1) * latin_points;
  for (const GridAxis& axis : grid) count *= axis.values.size();
  return count;
}

std::vector<Setting> Plan::point(std::size_t index) const {
  std::vector<Setting> out;
  const std::size_t latin_at = index % latin_points;
  index /= latin_points;
  std::vector<std::size_t> grid_at(grid.size());
  for (std::size_t i = grid.size(); i-- != 0;) {  // the last key changes first
    grid_at[i] = index % grid[i].values.size();
    index /= grid[i].values.size();
  }
  const auto add = [&out](const std::string& key, const Value& value) {
    out.push_back({key, value.word, &value.node, &value.node.where});
  };
  if (!list.empty()) {
    for (const ListValue& given : list[index]) add(given.key, given.value);
  }
  for (std::size_t i = 0; i < grid.size(); ++i) add(grid[i].key, grid[i].values[grid_at[i]]);
  for (const LatinAxis& axis : latin) {
    out.push_back({axis.key, axis.words[latin_at], nullptr, &axis.where});
  }
  return out;
}

std::string Plan::point_text(std::size_t index) const {
  std::string text;
  for (const Setting& setting : point(index)) {
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", setting.key, setting.word);
  }
  return text;
}

config::Read<config::Scenario> scenario_of(const Plan& plan, std::size_t index,
                                           const config::ReaderOptions& options) {
  config::Read<config::Scenario> out;
  config::Diagnostics errors;
  config::TomlNode root = plan.scenario;
  const std::vector<Setting> settings = plan.point(index);
  for (const Setting& setting : settings) {
    config::apply_override(root, setting.key,
                           setting.node != nullptr
                               ? *setting.node
                               : config::parse_override_value(setting.word, *setting.where),
                           errors);
  }
  // If a point replaces the kind of workload, the file's keys for the old kind are not mistakes.
  for (const Setting& setting : settings) {
    for (const std::string_view table : {"workload", "fabric"}) {
      const std::string choice = table == "workload" ? "workload.kind" : "fabric.topology";
      config::TomlMember* const owner = root.find(table);
      if (setting.key == choice && owner != nullptr) config::mark_inherited(owner->value);
    }
  }
  config::ReaderOptions reader = options;
  reader.overrides = plan.overrides;
  config::read_scenario_root(root, out.value, config::folder_of(plan.file), reader, errors);
  out.errors = errors.sorted();
  return out;
}

}  // namespace paceline::sweep
