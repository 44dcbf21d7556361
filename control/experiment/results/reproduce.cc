#include "control/experiment/results/reproduce.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace paceline::experiment {
namespace {

constexpr std::string_view kSeed = "seed=";
constexpr std::string_view kSet = "# --set ";

// The overrides that end a results file's configuration, one a line.
std::vector<std::string> overrides_in(std::string_view configuration) {
  std::vector<std::string> found;
  while (!configuration.empty()) {
    configuration.remove_suffix(configuration.back() == '\n' ? 1 : 0);
    const std::size_t end = configuration.rfind('\n');
    const std::size_t start = end == std::string_view::npos ? 0 : end + 1;
    const std::string_view line = configuration.substr(start);
    if (!line.starts_with(kSet)) break;
    found.emplace_back(line.substr(kSet.size()));
    configuration = configuration.substr(0, start);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

}  // namespace

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "_-./=:,@%+";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || kPlain.find(c) != kPlain.npos;
  });
  if (plain) return std::string(word);
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

Reproduce::Reproduce(const Results& results, std::string results_name)
    : file_(results.detail.file),
      overrides_(results.detail.overrides),
      results_name_(std::move(results_name)),
      knows_file_(!file_.empty()) {
  if (knows_file_) return;
  file_ = "experiment.toml";
  overrides_ = overrides_in(results.configuration);
}

std::string Reproduce::experiment() const {
  std::string command = "paceline ab " + shell_word(file_);
  for (const std::string& set : overrides_) {
    command += set.starts_with(kSeed) ? " --seed " + shell_word(set.substr(kSeed.size()))
                                      : " --set " + shell_word(set);
  }
  return command + " --out " + shell_word(results_name_);
}

std::string Reproduce::run(std::string_view scenario, std::string_view arm,
                           std::uint64_t seed) const {
  std::string command = fmt::format("paceline emulate {} --scenario {} --arm {}", shell_word(file_),
                                    shell_word(scenario), shell_word(arm));
  for (const std::string& set : overrides_) {
    if (!set.starts_with(kSeed)) command += " --set " + shell_word(set);
  }
  return command + fmt::format(" --seed {} --series-out {}", seed,
                               shell_word(fmt::format("{}.{}.csv", scenario, arm)));
}

std::string Reproduce::page() const {
  return fmt::format("paceline report {}", shell_word(results_name_));
}

}  // namespace paceline::experiment
