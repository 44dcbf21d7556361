#include "dataplane/config/algorithm_catalogue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "cc/nearest_name.h"

namespace paceline::config {

namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostParamsTold = 256;
constexpr std::size_t kMostProfilesTold = 256;

// Members of one object. wrong() reports any that is not what it should be.
class ToldMembers {
 public:
  explicit ToldMembers(const Json& object) : object_(object) {}

  std::string text(const char* name) {
    const auto at = object_.find(name);
    if (at != object_.end() && at->is_string()) return at->get<std::string>();
    return miss(name), std::string();
  }
  double number(const char* name) {
    const auto at = object_.find(name);
    if (at != object_.end() && at->is_number() && std::isfinite(at->get<double>())) {
      return at->get<double>();
    }
    return miss(name), 0;
  }
  bool flag(const char* name) {
    const auto at = object_.find(name);
    if (at != object_.end() && at->is_boolean()) return at->get<bool>();
    return miss(name), false;
  }
  const std::string& wrong() const { return wrong_; }

 private:
  void miss(const char* name) {
    if (wrong_.empty()) wrong_ = fmt::format("its table has no usable \"{}\"", name);
  }

  const Json& object_;
  std::string wrong_;
};

// An array of at most `most` objects; empty if it is missing.
const Json& list_in(const Json& object, const char* name, std::size_t most) {
  static const Json kNone = Json::array();
  const auto at = object.find(name);
  if (at == object.end() || !at->is_array() || at->size() > most) return kNone;
  return *at;
}

}  // namespace

Json algorithm_json(const cc::AlgorithmInfo& info) {
  Json params = Json::array();
  for (const cc::ParamSpec& spec : info.params) {
    params.push_back({{"name", spec.name},
                      {"unit", spec.unit},
                      {"default", spec.default_value},
                      {"min", spec.min},
                      {"max", spec.max},
                      {"live", spec.live},
                      {"meaning", spec.meaning},
                      {"source", spec.source}});
  }
  Json profiles = Json::array();
  profiles.push_back({{"name", "default"}, {"source", "the defaults of its parameters"}});
  for (const cc::Profile& profile : info.profiles) {
    Json values = Json::object();
    for (const cc::ProfileValue& value : profile.values) {
      values[std::string(value.name)] = {{"value", value.value}, {"per_bps", value.per_bps}};
    }
    profiles.push_back(
        {{"name", profile.name}, {"source", profile.source}, {"values", std::move(values)}});
  }
  return {{"name", info.name},
          {"summary", info.summary},
          {"proactive", info.proactive},
          {"params", std::move(params)},
          {"profiles", std::move(profiles)}};
}

Json origin_json(const PluginOrigin& origin) {
  return {{"path", origin.path}, {"sha256", origin.sha256}};
}

AlgorithmCatalogue::AlgorithmCatalogue() {
  infos_.reserve(kMostAlgorithms);  // so that none moves
  for (const cc::AlgorithmInfo& info : cc::algorithms()) {
    if (!cc::is_plugin(info.id)) infos_.push_back(info);
  }
}

const AlgorithmCatalogue& AlgorithmCatalogue::built_in() {
  static const AlgorithmCatalogue kBuiltIn;
  return kBuiltIn;
}

std::string AlgorithmCatalogue::add(const Json& table) {
  if (!table.is_object()) return "the table of a plug-in is not an object";
  auto told = std::make_unique<AlgorithmCatalogue::Told>();
  const auto keep = [&](std::string text) -> std::string_view {
    return told->texts.emplace_back(std::move(text));
  };
  ToldMembers members(table);
  cc::AlgorithmInfo info;
  info.name = keep(members.text("name"));
  info.summary = keep(members.text("summary"));
  info.proactive = members.flag("proactive");
  if (!members.wrong().empty()) return members.wrong();
  const Json plugin = table.value("plugin", Json::object());
  ToldMembers from(plugin);
  told->origin = {from.text("path"), from.text("sha256")};
  if (!from.wrong().empty()) return from.wrong();
  if (table.contains("asked")) told->asked = members.text("asked");
  for (const Json& entry : list_in(table, "params", kMostParamsTold)) {
    ToldMembers param(entry);
    cc::ParamSpec spec;
    spec.name = keep(param.text("name"));
    spec.unit = keep(param.text("unit"));
    spec.default_value = param.number("default");
    spec.min = param.number("min");
    spec.max = param.number("max");
    spec.live = param.flag("live");
    spec.meaning = keep(param.text("meaning"));
    spec.source = keep(param.text("source"));
    if (!param.wrong().empty()) return param.wrong();
    told->params.push_back(spec);
  }
  for (const Json& entry : list_in(table, "profiles", kMostProfilesTold)) {
    ToldMembers profile(entry);
    const std::string name = profile.text("name");
    if (name == "default") continue;  // implied by the parameters
    std::vector<cc::ProfileValue>& values = told->values.emplace_back();
    const Json given = entry.is_object() ? entry.value("values", Json::object()) : Json::object();
    for (const auto& [key, value] : given.items()) {
      ToldMembers numbers(value);
      values.push_back({keep(key), numbers.number("value"), numbers.number("per_bps")});
      if (!numbers.wrong().empty()) return numbers.wrong();
    }
    told->profiles.push_back({keep(name), keep(profile.text("source")), values});
    if (!profile.wrong().empty()) return profile.wrong();
  }
  if (const Json before = this->table(info.name); before == table) return {};  // nothing new
  info.params = told->params;
  info.profiles = told->profiles;
  told->name = info.name;
  const auto same = std::find_if(infos_.begin(), infos_.end(), [&](const cc::AlgorithmInfo& known) {
    return known.name == info.name;
  });
  if (same == infos_.end()) {
    if (infos_.size() == kMostAlgorithms) return fmt::format("{} are known already", infos_.size());
    info.id = static_cast<cc::AlgorithmId>(infos_.size());  // of this catalogue alone
    infos_.push_back(info);
  } else if (!cc::is_plugin(same->id)) {
    return fmt::format("a built-in algorithm is called \"{}\"", info.name);
  } else {
    for (const auto& before : told_) before->current = before->current && before->name != info.name;
    info.id = same->id;
    *same = info;
  }
  told_.push_back(std::move(told));
  return {};
}

const cc::AlgorithmInfo* AlgorithmCatalogue::find(std::string_view name) const {
  const auto at = std::find_if(infos_.begin(), infos_.end(),
                               [&](const cc::AlgorithmInfo& info) { return info.name == name; });
  return at == infos_.end() ? nullptr : &*at;
}

const PluginOrigin* AlgorithmCatalogue::origin(std::string_view name) const {
  for (const auto& told : told_) {
    if (told->current && told->name == name) return &told->origin;
  }
  return nullptr;
}

cc::Registered AlgorithmCatalogue::at(const std::string& path) const {
  const auto newest = std::find_if(told_.rbegin(), told_.rend(), [&](const auto& told) {
    return told->origin.path == path || told->asked == path;
  });
  if (newest == told_.rend()) return {nullptr, path + ": not loaded"};
  return {find((*newest)->name), {}};
}

Json AlgorithmCatalogue::table(std::string_view name) const {
  const cc::AlgorithmInfo* const info = find(name);
  if (info == nullptr) return nullptr;
  Json out = algorithm_json(*info);
  for (const auto& told : told_) {
    if (!told->current || told->name != name) continue;
    out["plugin"] = origin_json(told->origin);
    if (!told->asked.empty()) out["asked"] = told->asked;
  }
  return out;
}

std::string_view AlgorithmCatalogue::nearest(std::string_view name) const {
  std::vector<std::string_view> names;
  for (const cc::AlgorithmInfo& info : infos_) names.push_back(info.name);
  return cc::nearest_name(name, names);
}

}  // namespace paceline::config
