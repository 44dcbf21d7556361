// Jobs in small fabrics, run with checks of every invariant.
#pragma once

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools::job_runs {

inline constexpr std::uint64_t kSeed = 5;

inline const std::string kEightNics = "hosts = 8\nrate = \"100Gb/s\"\n";

inline PreparedScenario prepared_job(const std::string& job, const std::string& fabric = kEightNics,
                                     const std::string& more = "") {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  auto read = config::read_scenario_text(
      "[fabric]\n" + fabric +
          "[cc]\nalgorithm = \"fixed\"\n[workload]\nkind = \"job\"\n[workload.job]\n" + job + more,
      "test", ".", options);
  REQUIRE(read.errors == std::vector<std::string>{});
  auto out = prepare(std::move(read.value));
  REQUIRE(out.errors == std::vector<std::string>{});
  return std::move(out.value);
}

inline ScenarioRun run_job(const PreparedScenario& scenario, std::uint32_t threads = 1) {
  RunControl control;
  control.check_invariants = true;
  control.threads = threads;
  ScenarioRun run = run_scenario(scenario, scenario.scenario.cc, kSeed, control);
  REQUIRE(run.end == RunEnd::completed);
  REQUIRE(run.job.has_value());
  CHECK(run.network.total_drops() == 0);
  return run;
}

}  // namespace paceline::tools::job_runs
