#include "tools/emulate/experiment_pick.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <tuple>

#include "control/experiment/design.h"

namespace paceline::tools {

namespace {

// The item of that name; else an error that lists all names.
template <class Item>
const Item* named(const std::vector<Item>& items, const std::string& option,
                  const std::string& name, const std::string& file,
                  std::vector<std::string>& errors) {
  std::vector<std::string> names;
  for (const Item& item : items) {
    if (item.name == name) return &item;
    names.push_back(item.name);
  }
  errors.push_back(fmt::format("{} '{}': {} has {}", option, name, file, fmt::join(names, ", ")));
  return nullptr;
}

}  // namespace

config::Read<config::Scenario> pick_run(const InputOptions& input, const std::string& scenario,
                                        const std::string& arm, config::ReaderOptions options) {
  config::Read<config::Scenario> out;
  for (const auto& [option, other, given] : {std::tuple("--scenario", "--arm", !scenario.empty()),
                                             std::tuple("--arm", "--scenario", !arm.empty())}) {
    if (!given) {
      out.errors.push_back(
          fmt::format("{} without {}: one run of an experiment is named by both", other, option));
    }
  }
  if (input.file.empty()) out.errors.emplace_back("--scenario and --arm need an experiment FILE");
  if (!out.errors.empty()) return out;
  InputOptions without_seed = input;  // --seed is the seed of the run, not of the experiment
  without_seed.seed.reset();
  options.overrides = without_seed.overrides();
  auto read = config::read_experiment_file(input.file, options);
  if (!read.ok()) {
    out.errors = std::move(read.errors);
    return out;
  }
  const config::Scenario* chosen =
      named(read.value.scenarios, "--scenario", scenario, input.file, out.errors);
  const config::Arm* under = named(read.value.arms, "--arm", arm, input.file, out.errors);
  if (!out.errors.empty()) return out;
  out.value = *chosen;
  out.value.cc = under->cc;
  out.value.seed = input.seed ? *input.seed : experiment::repetition_seed(read.value.seed, 0);
  return out;
}

}  // namespace paceline::tools
