#include "tools/task/input_keys.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <limits>
#include <variant>
#include <vector>

#include "cc/plugin/plugin.h"
#include "cc/registry.h"
#include "dataplane/base/hash.h"
#include "dataplane/config/keys/scenario_keys.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;

// The library's hash, for hundreds of megabytes where the program is built for debugging.
std::uint64_t content_key(const std::string& path) {
  return std::hash<std::string>()(
      config::read_text_file(path, std::numeric_limits<std::size_t>::max()).value);
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
  config::Scenario named = scenario;
  ContentHash hash;
  for (const config::KeySpec& key : config::scenario_keys()) {
    if (key.form != config::Form::path) continue;
    const std::string& path = *std::get<std::string*>(key.field(named));
    if (!path.empty()) hash.field(key.path).number(of_file(path));
  }
  return hash.value();
}

std::uint64_t InputKeys::of_plugins(const config::CcConfig& cc) {
  ContentHash hash;
  bool any = false;
  for (const std::string& name : {cc.algorithm, cc.fallback}) {
    const cc::AlgorithmInfo* const info = cc::find(name);
    const cc::plugin::Plugin* const plugin = info == nullptr ? nullptr : cc::plugin_of(info->id);
    if (plugin == nullptr) continue;
    hash.field(name).field(plugin->sha256);
    any = true;
  }
  return any ? hash.value() : 0;
}

}  // namespace paceline::tools
