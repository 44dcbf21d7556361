// The runs of a league as tasks, and the results collected so far.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/experiment/design.h"
#include "control/league/cell.h"
#include "control/league/plan/plan.h"
#include "tools/run/scenario_run.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

class LeagueTasks final : public TaskList {
 public:
  // `prepared` in the order of plan.cells. All arguments outlive this.
  LeagueTasks(const league::Plan& plan, const std::vector<PreparedScenario>& prepared);

  std::size_t size() const override { return planned_.size(); }
  experiment::WorkUnit unit(std::size_t task) const override;
  std::string name(std::size_t task) const override;
  std::uint64_t task_key(std::size_t task) const override;
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override;
  std::string keep(std::size_t task, std::string_view record) override;

  // Cell by cell, repetition by repetition: the input of league::results_of. Complete when all are
  // kept.
  const std::vector<league::Run>& runs() const { return runs_; }

 private:
  std::size_t cell(std::size_t task) const {
    return plan_.cell(planned_[task].scenario, planned_[task].arm);
  }

  const league::Plan& plan_;
  const std::vector<PreparedScenario>& prepared_;
  std::vector<experiment::PlannedRun> planned_;  // arm: of the plan's entries
  std::vector<std::uint64_t> cell_keys_;         // in the order of plan.cells
  std::vector<league::Run> runs_;
};

}  // namespace paceline::tools
