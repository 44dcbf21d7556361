// Whether a fabric connects the hosts that exchange messages. Rails without cores do not reach each
// other, nor do parts of a topology file; that is an error only if a message needs it.
#pragma once

#include <string>

#include "dataplane/config/scenario.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/fabric/topology/fabric_spec.h"

namespace paceline {

// Why the first message between two hosts without a path cannot be sent, naming both; empty: every
// message has a path. `fabric` is that of the scenario and buildable.
std::string no_path_of(const config::Scenario& scenario, const fabric::FabricSpec& fabric,
                       const MessagePlan& plan);

}  // namespace paceline
