// Estimates every schedule that a group of ranks can run.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/collective/tune/fabric_load.h"
#include "tools/collective/tune/schedule_cost.h"
#include "tools/collective/tune/trial_runner.h"

namespace paceline::tools {

struct Estimate {
  std::string schedule;
  CostSplit cost;
  std::uint32_t rounds = 0;
  std::uint32_t network_rounds = 0;
  double port_share = 0;  // buffers that the busiest port carries
};

class CostModel {
 public:
  // `group` must outlive this.
  CostModel(const TuneGroup& group, const SendCost& cost)
      : group_(group), cost_(cost), load_(group.scenario) {}

  // By the settings of the scenario; the lowest first.
  std::vector<Estimate> estimates(workload::CollectiveOp op, std::uint64_t bytes);
  const SendCost& cost() const { return cost_; }

 private:
  struct Known {
    std::string name;
    workload::Schedule schedule;
    ScheduleCost cost;
  };

  const std::vector<Known>& schedules_of(workload::CollectiveOp op);

  const TuneGroup& group_;
  SendCost cost_;
  FabricLoad load_;
  std::map<workload::CollectiveOp, std::vector<Known>> known_;
};

}  // namespace paceline::tools
