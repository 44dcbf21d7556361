// The runs of an experiment as tasks, and the results collected so far.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/experiment/design.h"
#include "control/experiment/run_result.h"
#include "dataplane/config/scenario.h"
#include "tools/experiment/detail_collector.h"
#include "tools/run/scenario_run.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

class AbTasks final : public TaskList {
 public:
  // Experiment and scenarios must outlive this. check: the algorithms' invariants at every step.
  // detail: records bring distributions and series.
  AbTasks(const config::Experiment& experiment, const std::vector<PreparedScenario>& scenarios,
          bool check, bool detail);

  std::size_t size() const override { return plan_.size(); }
  experiment::WorkUnit unit(std::size_t task) const override;
  std::string name(std::size_t task) const override;
  std::uint64_t task_key(std::size_t task) const override;
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override;
  std::string keep(std::size_t task, std::string_view record) override;

  // Results of runs that came to their end.
  std::vector<experiment::RunResult> finished() const;
  const DetailCollector& detail() const { return collector_; }

 private:
  std::size_t cell(const experiment::PlannedRun& run) const {
    return run.scenario * experiment_.arms.size() + run.arm;
  }

  const config::Experiment& experiment_;
  const std::vector<PreparedScenario>& scenarios_;
  bool check_;
  bool detail_;
  std::vector<experiment::PlannedRun> plan_;
  std::vector<std::uint64_t> cell_keys_;  // scenario x arms + arm
  DetailCollector collector_;
  std::vector<std::optional<experiment::RunResult>> results_;
};

}  // namespace paceline::tools
