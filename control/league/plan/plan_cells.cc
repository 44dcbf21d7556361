// Makes the scenarios that run out of the parts of a league file.

#include <algorithm>

#include "control/league/plan/plan_parts.h"

namespace paceline::league {

using config::TomlMember;
using config::TomlNode;

void check_keys(const TomlNode& table, std::string_view what,
                std::span<const std::string_view> valid, config::ReadContext& context) {
  for (const TomlMember& m : table.members) {
    if (std::find(valid.begin(), valid.end(), m.key) == valid.end()) {
      report_unknown_key(m, what, valid, context);
    }
  }
}

void make_cells(Plan& plan, const config::ReaderOptions& options, config::Diagnostics& errors) {
  config::ReaderOptions reader = options;
  reader.overrides.clear();
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    const PlanScenario& scenario = plan.scenarios[s];
    const auto parsed = config::parse_toml(scenario.text, scenario.file);
    if (!parsed.ok()) {
      for (const std::string& error : parsed.errors) errors.add({}, error);
      continue;
    }
    for (std::size_t e = 0; e < plan.entries.size(); ++e) {
      TomlNode root = parsed.value;
      root.where = {scenario.file, 1, 1};
      std::erase_if(root.members, [](const TomlMember& m) { return m.key == "cc"; });
      merge_into(root, scenario.laid);
      merge_into(root, plan.entries[e].laid);
      config::Scenario cell;
      read_scenario_root(root, cell, config::folder_of(scenario.file), reader, errors);
      cell.name = scenario.name;
      cell.cc = plan.entries[e].cc;
      plan.cells.push_back(std::move(cell));
    }
  }
}

}  // namespace paceline::league
