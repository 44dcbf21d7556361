// The runs of a sweep as tasks, and the results that have arrived.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "control/sweep/plan.h"
#include "control/sweep/results.h"
#include "tools/task/task_list.h"

namespace paceline::tools {

class SweepTasks final : public TaskList {
 public:
  // `plan` and `reader` must outlive this.
  SweepTasks(const sweep::Plan& plan, const config::ReaderOptions& reader);

  // Reads every point's scenario, with the files that it names. Returns errors, the first ones if
  // there are many; empty: all points can run.
  std::vector<std::string> check_points() const;

  // Repetition by repetition, point by point.
  std::size_t size() const override { return seeds_.size() * point_keys_.size(); }
  experiment::WorkUnit unit(std::size_t task) const override;
  std::string name(std::size_t task) const override;
  std::uint64_t task_key(std::size_t task) const override;
  TaskRecord execute(std::size_t task, const std::atomic<bool>& stop) const override;
  std::string keep(std::size_t task, std::string_view record) override;

  // The results that have arrived; do not use this list of tasks afterwards.
  std::vector<sweep::Run> take_runs() { return std::move(runs_); }
  const std::map<std::size_t, std::string>& reasons() const { return reasons_; }

 private:
  std::size_t point(std::size_t task) const { return task % point_keys_.size(); }

  const sweep::Plan& plan_;
  const config::ReaderOptions& reader_;
  std::vector<std::uint64_t> point_keys_;
  std::vector<std::uint64_t> seeds_;  // by repetition
  std::vector<sweep::Run> runs_;
  std::map<std::size_t, std::string> reasons_;
};

}  // namespace paceline::tools
