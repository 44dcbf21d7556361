// One [[entry]] of a league file.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>

#include "cc/params.h"
#include "cc/registry.h"
#include "control/league/plan/plan_parts.h"
#include "control/league/plan/settings_text.h"

namespace paceline::league {

namespace {

using config::TomlMember;
using config::TomlNode;
using Type = TomlNode::Type;

constexpr std::array<std::string_view, 2> kNeeds{"edge", "switch"};

// The file names a plug-in relative to its own folder; printed commands must work from anywhere.
void anchor_plugin(TomlNode& algorithm, const std::string& folder) {
  constexpr std::string_view kPrefix = "plugin:";
  if (algorithm.type != Type::text || !algorithm.text.starts_with(kPrefix)) return;
  const std::filesystem::path file = algorithm.text.substr(kPrefix.size());
  if (file.empty() || file.is_absolute()) return;
  std::error_code ignored;
  const auto whole = std::filesystem::absolute(std::filesystem::path(folder) / file, ignored);
  algorithm.text = std::string(kPrefix) + whole.lexically_normal().string();
}

// Parameters as they are on a link of 100 Gb/s.
void resolve(Entry& entry) {
  const cc::AlgorithmInfo* info = cc::find(entry.cc.algorithm);
  if (info == nullptr) return;
  cc::PortFacts facts;
  facts.link_rate = rate_from_gbps(100);
  std::vector<cc::ParamOverride> overrides;
  for (const config::ParamValue& p : entry.cc.params) overrides.push_back({p.name, p.value});
  const cc::ResolvedParams resolved = cc::resolve_params(*info, entry.cc.profile, overrides, facts);
  const auto* values = std::get_if<std::vector<double>>(&resolved);
  if (values == nullptr) return;  // reported by read_cc_table
  for (std::size_t i = 0; i < info->params.size(); ++i) {
    const cc::ParamSpec& spec = info->params[i];
    entry.params.push_back({std::string(spec.name), (*values)[i], std::string(spec.unit),
                            (*values)[i] != spec.default_value});
  }
}

}  // namespace

bool read_entry(TomlNode& node, Entry& entry, config::ReadContext& context) {
  config::Diagnostics& errors = *context.errors;
  std::string needs;
  const config::KeySpec key{.path = "needs", .form = config::Form::choice, .choices = kNeeds};
  const TomlMember* given = node.find("needs");
  if (given == nullptr) {
    errors.add(node.where, fmt::format("entry \"{}\": needs is missing: allowed is {}", entry.name,
                                       config::list_names(kNeeds)));
  } else if (read_value(key, &needs, given->value, context)) {
    entry.needs = needs == kNeeds[0] ? Needs::edge : Needs::switches;
  }
  const TomlMember* effort = node.find("effort");
  if (effort == nullptr || effort->value.type != Type::text || effort->value.text.empty()) {
    errors.add(effort == nullptr ? node.where : effort->value.where,
               fmt::format("entry \"{}\": effort: expected a text that says what tuning it had",
                           entry.name));
  } else {
    entry.effort = effort->value.text;
  }
  TomlMember* algorithm = node.find("algorithm");
  if (algorithm == nullptr) {
    errors.add(node.where, fmt::format("entry \"{}\" needs an algorithm", entry.name));
    return false;
  }
  anchor_plugin(algorithm->value, context.folder);
  constexpr std::array<std::string_view, 5> kOwn{"name", "needs", "effort", "fabric", "transport"};
  read_cc_table(node, "entry", kOwn, entry.cc, context);
  entry.algorithm = algorithm->value.text;
  entry.profile = entry.cc.profile;
  resolve(entry);
  for (const TomlMember& m : node.members) {
    if (m.key == "fabric" || m.key == "transport") entry.laid.members.push_back(m);
  }
  entry.laid.where = node.where;
  TomlNode cc = node;
  std::erase_if(cc.members, [&](const TomlMember& m) {
    return std::find(kOwn.begin(), kOwn.end(), m.key) != kOwn.end();
  });
  entry.settings = settings_of(entry.laid);
  entry.settings.push_back("cc.algorithm=" + entry.algorithm);
  entry.settings.push_back("cc.profile=" + entry.profile);
  std::erase_if(cc.members,
                [](const TomlMember& m) { return m.key == "algorithm" || m.key == "profile"; });
  for (std::string& set : settings_of(cc)) entry.settings.push_back("cc." + set);
  return true;
}

}  // namespace paceline::league
