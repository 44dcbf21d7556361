// What a fault of a scenario does to the links of the fabric. A fault of a rank does nothing here:
// see MessagePlan::slow_computing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline {

// LinkEvent::directions of "both", "up" or "down".
std::uint8_t directions_of(std::string_view name);

// `spec` has its links already: after the fault, what it changed returns to the spec's values.
std::vector<fabric::LinkEvent> fault_events(const config::FaultConfig& fault,
                                            const fabric::FabricSpec& spec);

}  // namespace paceline
