#include "control/experiment/analysis/notes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace paceline::experiment {

std::vector<std::string> notes_of(const Analysis& analysis, const RunGrid& grid) {
  std::vector<std::string> notes;
  const AnalysisPlan& plan = analysis.plan;
  std::uint32_t missing = 0;
  for (std::size_t s = 0; s < plan.scenarios.size(); ++s) {
    for (std::size_t a = 0; a < plan.arms.size(); ++a) {
      for (const RunStatus status : {RunStatus::unfinished, RunStatus::failed}) {
        std::vector<std::uint32_t> which;
        const RunResult* first = nullptr;
        for (std::uint32_t r = 0; r < grid.repetitions(); ++r) {
          const RunResult* run = grid.at(s, a, r);
          missing += run == nullptr && status == RunStatus::unfinished;
          if (run == nullptr || run->status != status) continue;
          which.push_back(r);
          if (first == nullptr) first = run;
        }
        if (first == nullptr) continue;
        notes.push_back(
            fmt::format("{}, {}: {} of {} runs {} (repetition {}). First: seed {}, {} of {} "
                        "messages completed{}{}",
                        plan.scenarios[s], plan.arms[a], which.size(), grid.repetitions(),
                        status == RunStatus::unfinished ? "did not finish" : "failed",
                        fmt::join(which, ", "), first->seed, first->messages_completed,
                        first->messages_started, first->reason.empty() ? "" : ": ", first->reason));
      }
    }
  }
  for (const Comparison& comparison : analysis.comparisons) {
    const auto outstanding = [](const RunCounts& counts) {
      return counts.messages_started - counts.messages_completed;
    };
    if (comparison.baseline_runs.unfinished + comparison.arm_runs.unfinished +
            comparison.baseline_runs.failed + comparison.arm_runs.failed >
        0) {
      continue;  // said above
    }
    const std::uint64_t baseline = outstanding(comparison.baseline_runs);
    const std::uint64_t arm = outstanding(comparison.arm_runs);
    if (baseline + arm == 0) continue;
    notes.push_back(fmt::format(
        "{}: outstanding at the stated end: {} {} of {}, {} {} of {} messages; their age counts",
        comparison.scenario, plan.arms[0], baseline, comparison.baseline_runs.messages_started,
        comparison.arm, arm, comparison.arm_runs.messages_started));
  }
  if (missing > 0) {
    notes.push_back(fmt::format(
        "{} of {} runs were not done; a comparison uses the repetitions in which both arms ran",
        missing, plan.scenarios.size() * plan.arms.size() * plan.repetitions));
  }
  return notes;
}

}  // namespace paceline::experiment
