#include "control/daemon/parameters/parameter_sets.h"

#include <fmt/format.h>

#include "cc/params.h"
#include "dataplane/base/text/enum_text.h"
#include "dataplane/base/units.h"

namespace paceline::daemon {

using nlohmann::json;

namespace {

constexpr EnumTexts<6> kActions{"set", "profile", "promote", "revert", "put back", "found"};
constexpr EnumTexts<6> kStatesOfChange{"pending", "applied",     "refused",
                                       "unknown", "not applied", "dry run"};

std::string text_in(const json& body, const char* name) {
  const auto at = body.find(name);
  return at != body.end() && at->is_string() ? at->get<std::string>() : std::string();
}

template <class Number>
Number number_in(const json& body, const char* name) {
  const auto at = body.find(name);
  return at != body.end() && at->is_number() ? at->get<Number>() : Number{};
}

}  // namespace

json json_of(const ParamSet& set) {
  json out{{"algorithm", set.algorithm}, {"profile", set.profile}, {"values", set.values}};
  if (set.plugin) out["plugin"] = config::origin_json(*set.plugin);
  return out;
}

void name_algorithm(const ParamSet& set, json& members) {
  members["algorithm"] =
      set.plugin ? std::string(config::kPluginPrefix) + set.plugin->path : set.algorithm;
  if (set.plugin) members["sha256"] = set.plugin->sha256;
}

std::optional<ParamSet> param_set_of(const json& body) {
  if (!body.is_object()) return std::nullopt;
  ParamSet set;
  set.algorithm = text_in(body, "algorithm");
  set.profile = text_in(body, "profile");
  if (set.algorithm.empty()) return std::nullopt;
  const auto values = body.find("values");
  if (values == body.end() || !values->is_object()) return std::nullopt;
  for (const auto& [name, value] : values->items()) {
    if (!value.is_number()) return std::nullopt;
    set.values[name] = value.get<double>();
  }
  if (const auto plugin = body.find("plugin"); plugin != body.end() && plugin->is_object()) {
    set.plugin = {text_in(*plugin, "path"), text_in(*plugin, "sha256")};
  }
  return set;
}

std::vector<NicParams> nic_params_of(const json& answer, std::string& error) {
  std::vector<NicParams> out;
  const auto nics = answer.find("nics");
  if (nics == answer.end() || !nics->is_array()) {
    error = "the service does not say which NICs it has";
    return out;
  }
  for (const json& nic : *nics) {
    NicParams params;
    const auto set = param_set_of(nic);
    params.nic = nic.is_object() ? text_in(nic, "name") : std::string();
    if (!set || params.nic.empty()) {
      error = "the service did not report the parameters in force";
      return {};
    }
    params.set = *set;
    params.generation = number_in<std::uint64_t>(nic, "generation");
    params.arm = number_in<std::uint32_t>(nic, "arm");
    params.epoch = number_in<std::uint32_t>(nic, "epoch");
    if (const auto fallback = nic.find("fallback"); fallback != nic.end()) {
      params.fallback = *fallback;
    }
    out.push_back(std::move(params));
  }
  return out;
}

std::vector<config::RecordField> params_request_fields() {
  std::vector<config::RecordField> fields{config::nic_names_field()};
  const std::vector<config::RecordField>& change = config::congestion_change_fields();
  fields.insert(fields.end(), change.begin(), change.end());
  return fields;
}

ParamsRequest params_request_of(json body, std::vector<std::string>& errors) {
  ParamsRequest request;
  body.erase("why");
  body.erase("dry_run");
  config::check_record(params_request_fields(), body, "body", errors);
  if (!errors.empty()) return request;
  request.nics = body.value("nics", request.nics);
  request.change = config::congestion_change_of(body);
  if (request.change.empty()) {
    errors.emplace_back("nothing to change: algorithm, profile or params is needed");
  }
  return request;
}

ParamSet resolve(const config::CongestionChange& change, const ParamSet& in_force,
                 std::uint64_t link_mbps, std::vector<std::string>& errors,
                 const config::AlgorithmCatalogue& known) {
  ParamSet out;
  out.algorithm = change.algorithm.value_or(in_force.algorithm);
  const cc::AlgorithmInfo* const algorithm = known.find(out.algorithm);
  if (algorithm == nullptr) {
    const std::string_view nearest = known.nearest(out.algorithm);
    errors.push_back(fmt::format(
        "algorithm: there is no \"{}\"{}", out.algorithm,
        nearest.empty() ? std::string() : fmt::format("; did you mean \"{}\"?", nearest)));
    return out;
  }
  std::vector<cc::ParamOverride> values;
  for (const auto& [name, value] : in_force.values) values.push_back({name, value});
  cc::PortFacts facts;
  facts.link_rate = rate_from_mbps(link_mbps);
  const config::ResolvedChange resolved =
      config::resolve_change(change, *algorithm, in_force.profile, values, facts);
  out.profile = resolved.profile;
  errors.insert(errors.end(), resolved.errors.begin(), resolved.errors.end());
  for (std::size_t i = 0; i < resolved.values.size(); ++i) {
    out.values[std::string(algorithm->params[i].name)] = resolved.values[i];
  }
  if (const config::PluginOrigin* const origin = known.origin(out.algorithm)) out.plugin = *origin;
  return out;
}

std::string_view to_text(ChangeAction action) { return enum_text(kActions, action); }
std::string_view to_text(ChangeState state) { return enum_text(kStatesOfChange, state); }

json json_of(const Change& change) {
  json nics = json::object();
  for (const auto& [name, nic] : change.nics) {
    nics[name] = {{"from", json_of(nic.from)},
                  {"to", json_of(nic.to)},
                  {"generation", nic.generation},
                  {"changes", differences(nic.from, nic.to)}};
  }
  json out{{"action", to_text(change.action)},
           {"state", to_text(change.state)},
           {"who", change.who},
           {"why", change.why},
           {"nics", std::move(nics)}};
  if (!change.errors.empty()) out["errors"] = change.errors;
  if (change.restored) out["restored"] = *change.restored;
  if (change.undone != 0) out["undone"] = change.undone;
  return out;
}

Change change_of(std::int64_t number, std::int64_t at_unix_ns, const json& body) {
  Change change;
  change.number = number;
  change.at_unix_ns = at_unix_ns;
  if (!body.is_object()) return change;
  change.action =
      enum_value<ChangeAction>(kActions, text_in(body, "action")).value_or(ChangeAction::set);
  // A change that cannot be read has changed nothing that a revert could undo.
  change.state = enum_value<ChangeState>(kStatesOfChange, text_in(body, "state"))
                     .value_or(ChangeState::refused);
  change.who = text_in(body, "who");
  change.why = text_in(body, "why");
  change.undone = number_in<std::int64_t>(body, "undone");
  if (body.contains("restored")) change.restored = number_in<std::int64_t>(body, "restored");
  const auto nics = body.find("nics");
  if (nics == body.end() || !nics->is_object()) return change;
  for (const auto& [name, nic] : nics->items()) {
    if (!nic.is_object()) continue;
    const auto from = param_set_of(nic.value("from", json()));
    const auto to = param_set_of(nic.value("to", json()));
    if (from && to) change.nics[name] = {*from, *to, number_in<std::uint64_t>(nic, "generation")};
  }
  return change;
}

RevertPlan revert_to(const std::vector<Change>& changes, std::optional<std::int64_t> to,
                     std::vector<std::string>& errors) {
  // The journal's position after each change: at the change that the next revert would undo.
  std::map<std::int64_t, std::int64_t> stands{{0, 0}};
  std::map<std::int64_t, const Change*> applied;
  std::map<std::int64_t, std::int64_t> before;  // of each step, where the journal stood before it
  std::int64_t at = 0;
  for (const Change& change : changes) {
    if (change.state != ChangeState::applied || change.nics.empty()) continue;
    applied[change.number] = &change;
    if (change.restored) {
      const auto then = stands.find(*change.restored);
      at = then == stands.end() ? 0 : then->second;
    } else if (change.action != ChangeAction::put_back) {
      before[change.number] = at;
      at = change.number;
    }
    stands[change.number] = at;
  }
  RevertPlan plan;
  if (!to) {
    if (at == 0) {
      errors.emplace_back(applied.empty() ? "nothing has been changed that could be reverted"
                                          : "every change is reverted already; see the history");
      return plan;
    }
    for (const auto& [name, nic] : applied.at(at)->nics) plan.wanted[name] = nic.from;
    plan.undone = at;
    plan.restored = before.at(at);
    return plan;
  }
  if (*to != 0 && !applied.contains(*to)) {
    errors.push_back(fmt::format("to: there is no applied change {}; see the history", *to));
    return plan;
  }
  // For each NIC that was changed since: the set before the first of these changes.
  for (auto change = applied.upper_bound(*to); change != applied.end(); ++change) {
    for (const auto& [name, nic] : change->second->nics) plan.wanted.emplace(name, nic.from);
  }
  plan.restored = *to;
  if (plan.wanted.empty()) {
    errors.push_back(fmt::format("to: nothing has been changed since change {}", *to));
  }
  return plan;
}

std::vector<std::string> differences(const ParamSet& from, const ParamSet& to) {
  if (from.algorithm != to.algorithm || from.plugin != to.plugin) {
    // This much of a hash tells two builds apart; the whole hash is beside it.
    const std::string origin = to.plugin ? fmt::format(" (plugin:{}, sha256 {})", to.plugin->path,
                                                       to.plugin->sha256.substr(0, 16))
                                         : std::string();
    return {fmt::format("algorithm {} -> {}{}", from.algorithm, to.algorithm, origin)};
  }
  std::vector<std::string> out;
  if (from.profile != to.profile) {
    out.push_back(fmt::format("profile {} -> {}", from.profile, to.profile));
  }
  for (const auto& [name, value] : to.values) {
    const auto before = from.values.find(name);
    if (before == from.values.end()) {
      out.push_back(fmt::format("{} = {}", name, cc::number_text(value)));
    } else if (before->second != value) {
      out.push_back(fmt::format("{} {} -> {}", name, cc::number_text(before->second),
                                cc::number_text(value)));
    }
  }
  return out;
}

}  // namespace paceline::daemon
