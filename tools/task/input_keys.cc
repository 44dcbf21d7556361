#include "tools/task/input_keys.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "cc/plugin/plugin.h"
#include "cc/registry.h"
#include "dataplane/base/hash.h"
#include "dataplane/config/keys/scenario_keys.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;

// Piece by piece, by the library's hash: this program has hundreds of megabytes where it is built
// for debugging.
std::uint64_t content_key(const std::string& path) {
  constexpr std::size_t kPieceBytes = std::size_t{1} << 20;
  std::ifstream file(path, std::ios::binary);
  std::string piece(kPieceBytes, '\0');
  ContentHash hash;
  while (file) {
    file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    const std::string_view read(piece.data(), static_cast<std::size_t>(file.gcount()));
    if (!read.empty()) hash.number(std::hash<std::string_view>()(read));
  }
  return hash.value();
}

// The file, or where there is none the files NAME.*: traces of Chakra are one a rank.
std::vector<std::string> files_meant(const std::string& path) {
  std::error_code failed;
  if (fs::is_regular_file(path, failed)) return {path};
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  const std::string begin = fs::path(path).filename().string() + ".";
  std::vector<std::string> files;
  for (fs::directory_iterator at(folder, failed), end; !failed && at != end; at.increment(failed)) {
    if (at->path().filename().string().starts_with(begin)) files.push_back(at->path().string());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void add_field(ContentHash& hash, const config::Field& field) {
  std::visit(
      [&hash](const auto* value) {
        using T = std::remove_const_t<std::remove_pointer_t<decltype(value)>>;
        if constexpr (std::is_same_v<T, Picos>) {
          hash.number(value->count);
        } else if constexpr (std::is_same_v<T, Rate>) {
          hash.number(value->bps);
        } else if constexpr (std::is_same_v<T, std::string>) {
          hash.field(*value);
        } else if constexpr (std::is_same_v<T, std::vector<std::uint32_t>>) {
          hash.number(value->size());
          for (const std::uint32_t one : *value) hash.number(one);
        } else {
          hash.number(*value);
        }
      },
      field);
}

// Every key of each element of a list.
template <class List, class FieldOf>
void add_list(ContentHash& hash, List& list, std::span<const config::KeySpec> keys,
              FieldOf field_of) {
  hash.number(list.size());
  for (auto& one : list) {
    for (const config::KeySpec& key : keys) add_field(hash, field_of(one, key.name()));
  }
}

// The plug-ins' content is among the files.
void add_congestion_control(ContentHash& hash, const config::CcConfig& cc) {
  hash.field(cc.algorithm).field(cc.profile).field(cc.fallback).field(cc.fallback_profile);
  hash.number(cc.params.size());
  for (const config::ParamValue& param : cc.params) hash.field(param.name).number(param.value);
}

}  // namespace

std::uint64_t program_key() {
  static const std::uint64_t kKey = content_key("/proc/self/exe");
  return kKey;
}

std::uint64_t InputKeys::of_file(const std::string& path) {
  const auto found = known_.find(path);
  if (found != known_.end()) return found->second;
  ContentHash hash;
  for (const std::string& file : files_meant(path)) {
    hash.field(fs::path(file).filename().string()).number(content_key(file));
  }
  return known_.emplace(path, hash.value()).first->second;
}

std::uint64_t InputKeys::of_files(const config::Scenario& scenario) {
  config::Scenario named = scenario;  // fields are looked up in a copy that may be changed
  ContentHash hash;
  for (const config::KeySpec& key : config::scenario_keys()) {
    if (key.form != config::Form::path) continue;
    const std::string& path = *std::get<std::string*>(key.field(named));
    if (!path.empty()) hash.field(key.path).number(of_file(path));
  }
  for (const std::string& name : {scenario.cc.algorithm, scenario.cc.fallback}) {
    const cc::AlgorithmInfo* const info = cc::find(name);
    const cc::plugin::Plugin* const plugin = info == nullptr ? nullptr : cc::plugin_of(info->id);
    if (plugin != nullptr) hash.field(name).field(plugin->sha256);
  }
  return hash.value();
}

std::uint64_t InputKeys::of_scenario(const config::Scenario& scenario) {
  config::Scenario read = scenario;
  ContentHash hash;
  for (const config::KeySpec& key : config::scenario_keys()) {
    const bool counts = key.form != config::Form::path && key.path != "name" && key.path != "seed";
    if (counts && key.field != nullptr) add_field(hash, key.field(read));
  }
  add_list(hash, read.events, config::event_keys(), config::event_field);
  add_list(hash, read.faults, config::fault_keys(), config::fault_field);
  add_list(hash, read.fabric.ecn.at_rates, config::marking_rate_keys(), config::marking_rate_field);
  add_congestion_control(hash, read.cc);
  return hash.number(of_files(scenario)).value();
}

}  // namespace paceline::tools
