// Computes the values that a NIC would run, from what is in force and what an operator wants. Pure.
#pragma once

#include <string>
#include <vector>

#include "cc/interface/algorithm.h"
#include "dataplane/service/nics/nic_set.h"
#include "dataplane/service/protocol/control_request.h"
#include "dataplane/transport/core/cc_setup.h"

namespace paceline::service {

// A whole congestion control of one NIC.
struct CcArm {
  transport::CcSetup setup{};
  std::string profile;  // that its values came from, "" where that is not known
  std::string fallback_profile;

  bool same_values(const CcArm& other) const {
    return setup.primary.algorithm == other.setup.primary.algorithm &&
           setup.primary.values == other.setup.primary.values;
  }
};

CcArm initial_arm(const NicCongestion& congestion);

struct ResolvedArm {
  CcArm arm;
  std::vector<std::string> errors;  // sentences; with any there is no arm
};

// Parameters that may not change while connections run are refused where the algorithm stays.
ResolvedArm resolve_arm(const CcArm& in_force, const config::CongestionChange& change,
                        const cc::PortFacts& facts);

}  // namespace paceline::service
