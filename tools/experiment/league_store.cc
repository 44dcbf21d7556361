#include "tools/experiment/league_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "dataplane/base/hash.h"
#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

namespace {

constexpr std::string_view kPluginWord = "plugin:";

std::string whole_file(const std::string& path) {
  return config::read_text_file(path, std::numeric_limits<std::size_t>::max()).value;
}

}  // namespace

std::vector<std::uint64_t> cell_keys(const league::Plan& plan) {
  std::vector<std::uint64_t> keys;
  // The library's hash, for hundreds of megabytes where it is built for debugging.
  const std::uint64_t program = std::hash<std::string>()(whole_file("/proc/self/exe"));
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    for (std::size_t e = 0; e < plan.entries.size(); ++e) {
      const config::Scenario& cell = plan.cells[plan.cell(s, e)];
      const league::Entry& entry = plan.entries[e];
      ContentHash hash;
      hash.number(program).field(plan.scenarios[s].name).field(entry.name);
      hash.field(plan.scenarios[s].text);
      for (const std::string& set : plan.scenarios[s].settings) hash.field(set);
      for (const std::string& set : entry.settings) hash.field(set);
      for (const std::string& file :
           {cell.fabric.topology_file, cell.workload.cdf_file, cell.workload.flows_file,
            cell.workload.matrix_file, cell.workload.placement_file}) {
        if (!file.empty()) hash.field(whole_file(file));
      }
      if (entry.algorithm.starts_with(kPluginWord)) {
        hash.field(whole_file(entry.algorithm.substr(kPluginWord.size())));
      }
      keys.push_back(hash.value());
    }
  }
  return keys;
}

LeagueStore::LeagueStore(std::string path, bool fresh) : path_(std::move(path)), fresh_(fresh) {
  if (fresh) return;
  const std::string text = whole_file(path_);
  torn_ = !text.empty() && text.back() != '\n';
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    if (auto keyed = league::parse_run_line(line)) runs_[keyed->key] = std::move(keyed->run);
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
  }
}

const league::Run* LeagueStore::find(std::uint64_t key) const {
  const auto found = runs_.find(key);
  return found == runs_.end() ? nullptr : &found->second;
}

std::string LeagueStore::add(std::uint64_t key, const league::Run& run) {
  const std::string line = (torn_ ? "\n" : "") + league::run_line(run, key) + "\n";
  const int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | (fresh_ ? O_TRUNC : 0);
  const int file = ::open(path_.c_str(), flags, 0666);
  // One write, so that a second league that appends to the same file does not cut lines apart.
  const bool good =
      file >= 0 && ::write(file, line.data(), line.size()) == static_cast<ssize_t>(line.size());
  const int error = errno;
  if (file >= 0) ::close(file);
  if (!good) return path_ + ": cannot be written: " + std::strerror(error);
  fresh_ = false;
  torn_ = false;
  runs_[key] = run;
  return {};
}

}  // namespace paceline::tools
