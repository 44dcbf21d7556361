// The runs of a league on threads: what the store has is taken from it, the rest is run, and every
// result goes to the place that the plan has for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/league/cell.h"
#include "control/league/plan/plan.h"
#include "tools/cli/cli.h"
#include "tools/experiment/league_store.h"
#include "tools/experiment/run_pool.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

class LeaguePool {
 public:
  // `prepared` in the order of plan.cells. All arguments outlive the pool.
  LeaguePool(const league::Plan& plan, const std::vector<PreparedScenario>& prepared,
             LeagueStore& store);

  void run(unsigned jobs, ProgressLine& line);

  // Cell by cell, repetition by repetition: what league::results_of takes. Whole when all are kept.
  const std::vector<league::Run>& runs() const { return runs_; }
  std::size_t kept() const { return reused_ + pool_.executed(); }
  std::size_t reused() const { return reused_; }
  const RunPool& pool() const { return pool_; }

 private:
  struct Task {
    std::size_t cell = 0;
    std::uint32_t repetition = 0;
    std::uint64_t seed = 0;
    std::uint64_t key = 0;
  };
  league::Run& place(const Task& task) {
    return runs_[task.cell * plan_.repetitions + task.repetition];
  }
  RunPool::Executed execute(const Task& task);

  const league::Plan& plan_;
  const std::vector<PreparedScenario>& prepared_;
  LeagueStore& store_;
  std::vector<Task> tasks_;  // those that are not in the store
  std::vector<league::Run> runs_;
  std::size_t reused_ = 0;
  RunPool pool_;
};

}  // namespace paceline::tools
