// The laws that the counters of a fabric must obey.
#pragma once

#include <string>

#include "dataplane/fabric/forwarding/fabric_state.h"

namespace paceline::fabric {

// See Network::check_conservation.
std::string check_conservation(const FabricState& state);

}  // namespace paceline::fabric
