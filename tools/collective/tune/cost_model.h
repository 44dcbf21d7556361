// Estimates every schedule that a group of ranks can run.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "tools/collective/tune/fabric_load.h"
#include "tools/collective/tune/schedule_cost.h"
#include "tools/collective/tune/trial_runner.h"

namespace paceline::tools {

struct Estimate {
  std::string schedule;
  std::uint32_t chunk_bytes = 0;  // the one that the model expects most of
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

  // With the settings of the scenario except the chunk, which is that of the scenario or one of
  // `chunks`; the lowest first.
  std::vector<Estimate> estimates(workload::CollectiveOp op, std::uint64_t bytes,
                                  std::span<const std::uint32_t> chunks);

 private:
  struct Known {
    std::string name;
    workload::Schedule schedule;
    ScheduleCost cost;
  };

  Estimate estimate(const Known& known, std::uint64_t bytes, std::uint32_t chunk) const;
  const std::vector<Known>& schedules_of(workload::CollectiveOp op);

  const TuneGroup& group_;
  SendCost cost_;
  FabricLoad load_;
  std::map<workload::CollectiveOp, std::vector<Known>> known_;
};

}  // namespace paceline::tools
