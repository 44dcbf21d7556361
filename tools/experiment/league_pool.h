// The runs of a league on threads: what the store has is taken from it, the rest is run, and every
// result goes to the place that the plan has for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/league/cell.h"
#include "control/league/plan.h"
#include "tools/cli/cli.h"
#include "tools/experiment/league_store.h"
#include "tools/experiment/run_pool.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

class LeaguePool {
 public:
  // `prepared` in the order of plan.cells. All arguments outlive the pool.
  LeaguePool(const league::Plan& plan, const std::vector<PreparedScenario>& prepared,
             const LeagueKeys& keys, LeagueStore& store);

  void run(unsigned jobs, ProgressLine& line);

  // Cell by cell, repetition by repetition: what league::results_of takes. Whole unless complete()
  // is false.
  const std::vector<league::Run>& runs() const { return runs_; }
  bool complete() const;
  std::size_t reused() const { return reused_; }
  const RunPool& pool() const { return pool_; }

 private:
  struct Task {
    std::size_t cell = 0;
    std::uint32_t repetition = 0;
    std::uint64_t seed = 0;
  };
  std::size_t place(const Task& task) const {
    return task.cell * plan_.repetitions + task.repetition;
  }
  RunPool::Executed execute(const Task& task);

  const league::Plan& plan_;
  const std::vector<PreparedScenario>& prepared_;
  const LeagueKeys& keys_;
  LeagueStore& store_;
  std::vector<Task> tasks_;  // those that are not in the store
  std::vector<league::Run> runs_;
  std::vector<bool> done_;
  std::size_t reused_ = 0;
  RunPool pool_;
};

// Data of a run that the league keeps.
league::Run league_run_of(const PreparedScenario& prepared, const ScenarioRun& run);

}  // namespace paceline::tools
