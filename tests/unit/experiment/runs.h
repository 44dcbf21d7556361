// Made-up runs for the tests of this folder.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "control/experiment/analysis/effects.h"
#include "control/experiment/design.h"

namespace paceline::experiment::test {

inline AnalysisPlan plan_with(std::vector<std::string> scenarios, std::uint32_t repetitions) {
  AnalysisPlan plan;
  plan.name = "test";
  plan.seed = 7;
  plan.repetitions = repetitions;
  plan.scenarios = std::move(scenarios);
  plan.arms = {"dcqcn", "cadence"};
  return plan;
}

inline RunResult run_of(const AnalysisPlan& plan, std::size_t scenario, std::size_t arm,
                        std::uint32_t repetition) {
  RunResult run;
  run.scenario = plan.scenarios[scenario];
  run.arm = plan.arms[arm];
  run.repetition = repetition;
  run.seed = repetition_seed(plan.seed, repetition);
  run.messages_started = 32;
  run.messages_completed = 32;
  run.hops = 1000 + repetition;
  run.events = 3000 + repetition;
  run.simulated = {123'456'789};
  run.trace_hash = 0x00ab'cdef'0123'4567U + repetition;
  return run;
}

inline void stop_early(RunResult& run, const std::string& reason) {
  run.status = RunStatus::unfinished;
  run.reason = reason;
  run.messages_completed = 20;
}

// Every run of the plan, each handed to `fill(run, scenario, arm, repetition)`.
inline std::vector<RunResult> runs_of(
    const AnalysisPlan& plan,
    const std::function<void(RunResult&, std::size_t, std::size_t, std::uint32_t)>& fill) {
  std::vector<RunResult> runs;
  for (std::uint32_t r = 0; r < plan.repetitions; ++r) {
    for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
      for (std::size_t a = 0; a < plan.arms.size(); ++a) {
        RunResult run = run_of(plan, s, a, r);
        fill(run, s, a, r);
        runs.push_back(run);
      }
    }
  }
  return runs;
}

}  // namespace paceline::experiment::test
