// The [cc] table of a scenario and the body of an [[arm]]: names and values are checked against the
// parameter tables that the algorithms declare.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "cc/profile_owners.h"
#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/toml/quantity.h"

namespace paceline::config {

namespace {

using Type = TomlNode::Type;

constexpr std::string_view kPluginPrefix = "plugin:";

class CcReader {
 public:
  CcReader(const TomlNode& node, std::string_view table, CcConfig& out, ReadContext& context)
      : node_(node), table_(table), out_(out), context_(context) {}

  void read(std::span<const std::string_view> also_valid) {
    std::vector<std::string_view> valid(also_valid.begin(), also_valid.end());
    valid.insert(valid.end(), cc_keys().begin(), cc_keys().end());
    for (const TomlMember& m : node_.members) {
      if (std::find(valid.begin(), valid.end(), m.key) == valid.end()) {
        report_unknown_key(m, table_, valid, context_);
      }
    }
    const cc::AlgorithmInfo* main = algorithm("algorithm", out_.algorithm, false);
    profile("profile", main, out_.profile);
    const cc::AlgorithmInfo* back = algorithm("fallback", out_.fallback, true);
    profile("fallback_profile", back, out_.fallback_profile);
    if (const TomlMember* m = node_.find("params")) params(m->value, main);
  }

 private:
  std::string path(std::string_view key) const { return fmt::format("{}.{}", table_, key); }

  void fail(const TomlNode& node, std::string_view key, const std::string& why) {
    context_.errors->add(node.where, fmt::format("{} = {}: {}", path(key), describe(node), why));
  }

  // Takes the text of `key` when given; null when it is absent or no text (reported).
  const TomlNode* text(std::string_view key, std::string& target) {
    const TomlMember* m = node_.find(key);
    if (m == nullptr) return nullptr;
    if (m->value.type != Type::text) {
      fail(m->value, key, "expected a name in quotes");
      return nullptr;
    }
    target = m->value.text;
    return &m->value;
  }

  const cc::AlgorithmInfo* algorithm(std::string_view key, std::string& target, bool reactive) {
    const TomlMember* m = node_.find(key);
    const TomlNode* given = text(key, target);
    if (m != nullptr && given == nullptr) return nullptr;  // reported; nothing to check against
    if (given != nullptr && target.starts_with(kPluginPrefix)) {
      return plugin(*given, key, target, reactive);
    }
    std::vector<std::string_view> names;
    for (const cc::AlgorithmInfo& a : context_.algorithms) {
      // The fallback runs towards peers that send no control messages, so it has no telemetry
      // either; and it must run in every fabric.
      if (reactive && (a.proactive || cc::needs_telemetry(a) || cc::needs_notices(a))) continue;
      names.push_back(a.name);
      if (a.name == target) return &a;
    }
    if (given == nullptr) return nullptr;  // a default that this build does not have
    const std::string_view near = nearest_name(target, names);
    const std::string hint = near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near);
    fail(*given, key,
         fmt::format("no such {}algorithm; {}allowed is {}", reactive ? "reactive " : "", hint,
                     list_names(names)));
    return nullptr;
  }

  // "plugin:PATH", relative to the folder of the file. The name that remains is the plug-in's own.
  const cc::AlgorithmInfo* plugin(const TomlNode& given, std::string_view key, std::string& target,
                                  bool fallback) {
    if (fallback) {
      fail(given, key, "a plug-in cannot be what takes over when one fails");
      return nullptr;
    }
    std::string file = target.substr(kPluginPrefix.size());
    if (context_.load_plugin == nullptr || file.empty()) {
      fail(given, key, file.empty() ? "expected a file after \"plugin:\"" : "no plug-ins here");
      return nullptr;
    }
    if (file.front() != '/') {
      file = (context_.folder.empty() ? std::string(".") : context_.folder) + "/" + file;
    }
    const cc::Registered loaded = context_.load_plugin(file);
    if (loaded.info == nullptr) {
      fail(given, key, loaded.error);
    } else {
      target = loaded.info->name;
    }
    return loaded.info;
  }

  void profile(std::string_view key, const cc::AlgorithmInfo* info, std::string& target) {
    const TomlNode* given = text(key, target);
    if (given == nullptr || info == nullptr) return;
    std::vector<std::string_view> names{"default"};
    for (const cc::Profile& p : info->profiles) {
      if (p.name != "default") names.push_back(p.name);
    }
    if (std::find(names.begin(), names.end(), target) != names.end()) return;
    const std::vector<std::string_view> owners = cc::profile_owners(target, context_.algorithms);
    const std::string_view near = nearest_name(target, names);
    const std::string hint = !owners.empty() ? fmt::format("{} has; ", list_names(owners))
                             : near.empty()  ? ""
                                             : fmt::format("did you mean \"{}\"? ", near);
    fail(*given, key,
         fmt::format("{} has no such profile; {}allowed is {}", info->name, hint,
                     list_names(names)));
  }

  void params(const TomlNode& table, const cc::AlgorithmInfo* info) {
    if (!table.is_table()) {
      fail(table, "params", fmt::format("expected a table, [{}]", path("params")));
      return;
    }
    if (info == nullptr) return;  // the algorithm itself is unknown, and reported
    std::vector<std::string_view> names;
    for (const cc::ParamSpec& p : info->params) names.push_back(p.name);
    for (const TomlMember& m : table.members) {
      const int index = cc::find_param(info->params, m.key);
      if (index < 0) {
        const std::string_view near = nearest_name(m.key, names);
        context_.errors->add(
            m.where, fmt::format("unknown parameter \"{}\" of {}; {}", m.key, info->name,
                                 near.empty() ? fmt::format("allowed is {}", list_names(names))
                                              : fmt::format("did you mean \"{}\"?", near)));
        continue;
      }
      param(m, info->params[static_cast<std::size_t>(index)]);
    }
  }

  void param(const TomlMember& m, const cc::ParamSpec& spec) {
    const std::string key = fmt::format("params.{}", m.key);
    const bool flag = spec.unit == "flag";
    double value = 0;
    if (m.value.type == Type::integer) {
      value = static_cast<double>(m.value.integer);
    } else if (m.value.type == Type::real) {
      value = m.value.real;
    } else if (m.value.type == Type::boolean && flag) {
      value = m.value.boolean ? 1 : 0;
    } else if (m.value.type == Type::text && has_unit(spec)) {
      const auto parsed = parse_in_unit(m.value.text, spec.unit);
      if (!parsed.ok()) return fail(m.value, key, parsed.error);
      value = parsed.value;
    } else {
      return fail(m.value, key, fmt::format("expected {}", expected(spec)));
    }
    if (!std::isfinite(value)) return fail(m.value, key, "expected a finite number");
    const bool whole = value == std::floor(value);
    if ((flag || spec.unit == "count") && !whole) {
      return fail(m.value, key, fmt::format("expected {}", expected(spec)));
    }
    if (value < spec.min || value > spec.max) {
      return fail(m.value, key,
                  fmt::format("out of range, allowed is [{} .. {}]{}", spec.min, spec.max,
                              has_unit(spec) ? fmt::format(" {}", spec.unit) : ""));
    }
    out_.params.push_back({m.key, value});
  }

  static bool has_unit(const cc::ParamSpec& spec) {
    return !spec.unit.empty() && spec.unit != "1" && spec.unit != "flag" && spec.unit != "count";
  }

  static std::string expected(const cc::ParamSpec& spec) {
    if (spec.unit == "flag") return "0, 1, true or false";
    if (spec.unit == "count") return "an integer";
    return has_unit(spec) ? fmt::format("a number of {}", spec.unit) : "a number";
  }

  const TomlNode& node_;
  std::string_view table_;
  CcConfig& out_;
  ReadContext& context_;
};

}  // namespace

void read_cc_table(const TomlNode& node, std::string_view table,
                   std::span<const std::string_view> also_valid, CcConfig& out,
                   ReadContext& context) {
  CcReader(node, table, out, context).read(also_valid);
}

}  // namespace paceline::config
