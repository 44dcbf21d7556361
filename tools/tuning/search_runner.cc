#include "tools/tuning/search_runner.h"

#include <algorithm>
#include <atomic>
#include <stdexcept>
#include <thread>

#include "tools/cli/cli.h"

namespace paceline::tools {

config::CcConfig SearchRunner::config_of(std::span<const double> values) const {
  config::CcConfig cc = arm_;
  for (const tuner::Dimension& dimension : space_.dimensions()) {
    // If a name is given twice, the later value holds.
    cc.params.push_back(
        {std::string(algorithm_.params[dimension.param].name), values[dimension.param]});
  }
  return cc;
}

experiment::RunResult SearchRunner::run(const PreparedScenario& scenario,
                                        const config::CcConfig& cc, std::uint64_t seed) const {
  RunControl control;
  control.stop = &Interrupt::flag();
  try {
    return run_scenario(scenario, cc, seed, control).result;
  } catch (const std::invalid_argument& error) {
    experiment::RunResult refused;
    refused.scenario = scenario.scenario.name;
    refused.status = experiment::RunStatus::failed;
    refused.reason = error.what();
    return refused;
  }
}

std::vector<tuner::Score> SearchRunner::evaluate(std::span<const std::vector<double>> candidates,
                                                 std::span<const std::uint64_t> seeds) const {
  const std::size_t runs = scenarios_.size() * seeds.size();  // of one candidate
  std::vector<experiment::RunResult> results(candidates.size() * runs);
  std::vector<config::CcConfig> configs;
  for (const std::vector<double>& values : candidates) configs.push_back(config_of(values));
  std::atomic<std::size_t> next{0};
  {
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < std::min<std::size_t>(jobs_, results.size()); ++i) {
      threads.emplace_back([&] {
        for (;;) {
          const std::size_t index = next.fetch_add(1);
          if (index >= results.size() || Interrupt::flag().load()) return;
          const std::size_t within = index % runs;
          results[index] = run(scenarios_[within / seeds.size()], configs[index / runs],
                               seeds[within % seeds.size()]);
        }
      });
    }
  }
  if (Interrupt::flag().load()) return {};
  std::vector<tuner::Score> scores;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    scores.push_back(tuner::score(std::span(results).subspan(i * runs, runs), limits_));
  }
  return scores;
}

}  // namespace paceline::tools
