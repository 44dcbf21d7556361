// From what a testbed file says to what host stacks are told.
#pragma once

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/neighbour/neighbour_config.h"

namespace paceline {

// `mac`: of the port. What is wrong with the whole, neighbour::problems says.
neighbour::HostConfig host_config_of(const config::HostConfig& host, const wire::MacAddress& mac);

}  // namespace paceline
