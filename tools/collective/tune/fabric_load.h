// The load that the transfers of a schedule put on the ports of a fabric whose switches spread
// traffic over equal-cost links.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"
#include "tools/collective/tune/schedule_cost.h"

namespace paceline::tools {

class FabricLoad {
 public:
  explicit FabricLoad(const config::Scenario& scenario);

  PortLoads ports(const PlacedSchedule& placed) const;

 private:
  // Picoseconds of each round, then of all.
  std::vector<double> times(const PlacedSchedule& placed, std::uint64_t bytes) const;
  // The slowest link of the one path that a message takes, unless packets are spread.
  std::vector<double> paths(const PlacedSchedule& placed) const;
  // Picoseconds for this many bytes at the rate of a NIC.
  double nic_time(std::uint64_t bytes) const;

  config::Scenario scenario_;
  fabric::FabricSpec spec_;
  fabric::Topology topology_;
};

}  // namespace paceline::tools
