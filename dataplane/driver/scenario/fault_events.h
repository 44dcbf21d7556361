// What a fault of a scenario does to the links of the fabric. That of a rank does nothing here: see
// MessagePlan::slow_computing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline {

// LinkEvent::directions of "both", "up" or "down".
std::uint8_t directions_of(std::string_view name);

// `spec` has its links already: what a fault changes becomes again as it is there.
std::vector<fabric::LinkEvent> fault_events(const config::FaultConfig& fault,
                                            const fabric::FabricSpec& spec);

}  // namespace paceline
