#include "control/tuner/online/candidates/presets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "cc/params.h"
#include "dataplane/config/scenario/document.h"
#include "dataplane/config/toml/toml_tree.h"

namespace paceline::tuner::online {

namespace {

using config::Diagnostics;
using config::TomlMember;
using config::TomlNode;
using Type = TomlNode::Type;

class PresetReader {
 public:
  PresetReader(Diagnostics& errors, std::span<const cc::AlgorithmInfo> algorithms)
      : errors_(errors), algorithms_(algorithms) {}

  void read(const TomlNode& root, PresetLibrary& out) {
    check_keys(root, "", {"schema", "algorithm", "emulator", "preset"});
    text(root, "", "algorithm", out.algorithm);
    text(root, "", "emulator", out.emulator);
    for (const cc::AlgorithmInfo& info : algorithms_) {
      if (info.name == out.algorithm) algorithm_ = &info;
    }
    if (algorithm_ == nullptr && !out.algorithm.empty()) {
      std::vector<std::string_view> names;
      for (const cc::AlgorithmInfo& info : algorithms_) names.push_back(info.name);
      errors_.add(
          root.find("algorithm")->value.where,
          fmt::format("algorithm = \"{}\": expected {}", out.algorithm, config::list_names(names)));
    }
    const TomlMember* list = root.find("preset");
    if (list == nullptr) return errors_.add(root.where, "at least one [[preset]] is needed");
    if (list->value.type != Type::array) {
      return errors_.add(list->value.where, "preset: expected an array of tables, [[preset]]");
    }
    for (const TomlNode& item : list->value.items) read_preset(item, out);
  }

 private:
  void check_keys(const TomlNode& table, std::string_view name,
                  std::initializer_list<std::string_view> valid) {
    const std::vector<std::string_view> names(valid);
    for (const TomlMember& m : table.members) {
      if (std::find(names.begin(), names.end(), m.key) != names.end()) continue;
      const std::string_view near = config::nearest_name(m.key, names);
      errors_.add(m.where, fmt::format("unknown key \"{}{}\"; {}", name, m.key,
                                       near.empty() ? "allowed is " + config::list_names(names)
                                                    : fmt::format("did you mean \"{}\"?", near)));
    }
  }
  const TomlNode* required(const TomlNode& table, std::string_view name, std::string_view key) {
    const TomlMember* m = table.find(key);
    if (m == nullptr) errors_.add(table.where, fmt::format("\"{}{}\" is missing", name, key));
    return m == nullptr ? nullptr : &m->value;
  }
  void wrong(const TomlNode& node, std::string_view name, std::string_view key,
             std::string_view expected) {
    errors_.add(node.where,
                fmt::format("{}{} = {}: expected {}", name, key, config::describe(node), expected));
  }
  void text(const TomlNode& table, std::string_view name, std::string_view key, std::string& out) {
    const TomlNode* node = required(table, name, key);
    if (node == nullptr) return;
    if (node->type != Type::text || node->text.empty()) {
      return wrong(*node, name, key, "a text that is not empty");
    }
    out = node->text;
  }
  static std::optional<double> number_of(const TomlNode& node) {
    if (node.type == Type::integer) return static_cast<double>(node.integer);
    if (node.type == Type::real && std::isfinite(node.real)) return node.real;
    return std::nullopt;
  }
  void number(const TomlNode& table, std::string_view name, std::string_view key, double least,
              double most, double& out) {
    const TomlNode* node = required(table, name, key);
    if (node == nullptr) return;
    const auto value = number_of(*node);
    if (!value || *value < least || *value > most) {
      return wrong(*node, name, key, fmt::format("a number from {} to {}", least, most));
    }
    out = *value;
  }
  void whole(const TomlNode& table, std::string_view name, std::string_view key, std::int64_t most,
             std::uint32_t& out) {
    const TomlNode* node = required(table, name, key);
    if (node == nullptr) return;
    if (node->type != Type::integer || node->integer < 0 || node->integer > most) {
      return wrong(*node, name, key, fmt::format("a whole number from 0 to {}", most));
    }
    out = static_cast<std::uint32_t>(node->integer);
  }

  void read_preset(const TomlNode& table, PresetLibrary& out) {
    if (!table.is_table()) {
      return errors_.add(table.where,
                         fmt::format("{}: expected a table, [[preset]]", config::describe(table)));
    }
    Preset preset;
    check_keys(table, "preset.", {"name", "command", "gain", "gain_sd", "signature", "params"});
    text(table, "preset.", "name", preset.name);
    text(table, "preset.", "command", preset.command);
    number(table, "preset.", "gain", -100, 100, preset.gain);
    number(table, "preset.", "gain_sd", 1e-6, 100, preset.gain_sd);
    for (const Preset& other : out.presets) {
      if (!preset.name.empty() && other.name == preset.name) {
        wrong(table.find("name")->value, "preset.", "name", "a name that no other preset has");
      }
    }
    if (const TomlNode* node = required(table, "preset.", "signature")) {
      if (node->is_table()) {
        read_signature(*node, preset.signature);
      } else {
        wrong(*node, "preset.", "signature", "a table");
      }
    }
    if (const TomlNode* node = required(table, "preset.", "params")) {
      if (node->is_table()) {
        read_params(*node, preset.params);
      } else {
        wrong(*node, "preset.", "params", "a table");
      }
    }
    out.presets.push_back(std::move(preset));
  }

  void read_signature(const TomlNode& table, Signature& out) {
    constexpr std::string_view kName = "signature.";
    check_keys(table, kName, {"load", "degree", "bytes", "core_marks", "link_gbps"});
    whole(table, kName, "load", 9, out.load);
    whole(table, kName, "degree", kDegrees - 1, out.degree);
    if (const TomlNode* node = required(table, kName, "core_marks")) {
      if (node->type != Type::boolean) wrong(*node, kName, "core_marks", "true or false");
      out.core_marks = node->boolean;
    }
    if (table.find("link_gbps") != nullptr) {
      number(table, kName, "link_gbps", 0, 3200, out.link_gbps);
    }
    const TomlNode* bytes = required(table, kName, "bytes");
    if (bytes == nullptr) return;
    double sum = 0;
    bool good = bytes->type == Type::array && bytes->items.size() == out.bytes.size();
    for (std::size_t i = 0; good && i < out.bytes.size(); ++i) {
      const auto value = number_of(bytes->items[i]);
      good = value && *value >= 0 && *value <= 1;
      if (good) sum += out.bytes[i] = *value;
    }
    if (!good || std::abs(sum - 1) > 0.02) {
      errors_.add(bytes->where,
                  "signature.bytes: expected three shares, each from 0 to 1, that add "
                  "up to 1");
    }
  }

  void read_params(const TomlNode& table, std::vector<config::ParamValue>& out) {
    if (algorithm_ == nullptr) return;
    for (const TomlMember& m : table.members) {
      const auto value = number_of(m.value);
      if (!value) {
        wrong(m.value, "params.", m.key, "a number");
        continue;
      }
      const cc::ParamOverride one{m.key, *value};
      const auto resolved = cc::resolve_params(*algorithm_, "", {&one, 1}, {});
      if (const auto* problems = std::get_if<std::vector<cc::ParamError>>(&resolved)) {
        for (const cc::ParamError& problem : *problems) errors_.add(m.where, problem.message);
        continue;
      }
      const int index = cc::find_param(algorithm_->params, m.key);
      if (!algorithm_->params[static_cast<std::size_t>(index)].live) {
        errors_.add(m.where, fmt::format("params.{} cannot change while connections run", m.key));
        continue;
      }
      out.push_back({m.key, *value});
    }
  }

  Diagnostics& errors_;
  std::span<const cc::AlgorithmInfo> algorithms_;
  const cc::AlgorithmInfo* algorithm_ = nullptr;
};

}  // namespace

config::Read<PresetLibrary> read_presets_text(std::string_view text, const std::string& source,
                                              std::span<const cc::AlgorithmInfo> algorithms) {
  return config::read_document(text, source, PresetLibrary{},
                               [&](TomlNode& root, PresetLibrary& out, Diagnostics& errors) {
                                 PresetReader(errors, algorithms).read(root, out);
                               });
}

config::Read<PresetLibrary> read_presets_file(const std::string& path,
                                              std::span<const cc::AlgorithmInfo> algorithms) {
  config::Read<std::string> text = config::read_text_file(path, config::kLongestDocument);
  if (!text.ok()) return {{}, std::move(text.errors)};
  return read_presets_text(text.value, path, algorithms);
}

std::string presets_text(const PresetLibrary& library) {
  std::string out = fmt::format("schema = {}\nalgorithm = \"{}\"\nemulator = \"{}\"\n",
                                library.schema, library.algorithm, library.emulator);
  for (const Preset& preset : library.presets) {
    const Signature& s = preset.signature;
    out += fmt::format(
        "\n[[preset]]\nname = \"{}\"\ncommand = \"{}\"\ngain = {}\ngain_sd = {}\n"
        "signature = {{ load = {}, degree = {}, bytes = [{:.2f}, {:.2f}, {:.2f}], core_marks = {}, "
        "link_gbps = {} }}\n\n[preset.params]\n",
        preset.name, preset.command, cc::number_text(preset.gain), cc::number_text(preset.gain_sd),
        s.load, s.degree, s.bytes[0], s.bytes[1], s.bytes[2], s.core_marks,
        cc::number_text(s.link_gbps));
    for (const config::ParamValue& param : preset.params) {
      out += fmt::format("{} = {}\n", param.name, cc::number_text(param.value));
    }
  }
  return out;
}

std::vector<double> values_of(const Preset& preset, const cc::AlgorithmInfo& algorithm,
                              std::span<const double> champion) {
  std::vector<double> values(champion.begin(), champion.end());
  for (const config::ParamValue& param : preset.params) {
    const int index = cc::find_param(algorithm.params, param.name);
    if (index >= 0) values[static_cast<std::size_t>(index)] = param.value;
  }
  return values;
}

std::vector<Promise> promises(const PresetLibrary& library, const Signature& signature,
                              std::size_t most) {
  constexpr double kLeastSd = 0.05;
  constexpr double kStrangeSd = 0.15;  // of a preset of another workload
  std::vector<std::pair<double, std::size_t>> near;
  for (std::size_t i = 0; i < library.presets.size(); ++i) {
    near.emplace_back(distance(library.presets[i].signature, signature), i);
  }
  std::sort(near.begin(), near.end());
  if (near.size() > most) near.resize(most);
  std::vector<Promise> out;
  for (const auto& [far, index] : near) {
    const Preset& preset = library.presets[index];
    const double match = std::max(0.0, 1 - far);
    out.push_back({index, preset.gain * match,
                   std::max(kLeastSd, preset.gain_sd) + kStrangeSd * (1 - match)});
  }
  return out;
}

}  // namespace paceline::tuner::online
