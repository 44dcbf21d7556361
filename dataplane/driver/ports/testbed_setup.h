// Makes the configuration of host stacks from a testbed file.
#pragma once

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/neighbour/neighbour_config.h"

namespace paceline {

// `mac`: of the port. neighbour::problems tells what is wrong with the result.
neighbour::HostConfig host_config_of(const config::HostConfig& host, const wire::MacAddress& mac);

}  // namespace paceline
