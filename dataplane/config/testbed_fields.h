// Which field a key of a testbed file fills. `name`: of a row of eal_keys() or port_keys().
#pragma once

#include <string_view>

#include "dataplane/config/scenario_keys.h"
#include "dataplane/config/testbed.h"

namespace paceline::config {

Field eal_field(EalConfig& eal, std::string_view name);
Field port_field(PortConfig& port, std::string_view name);

}  // namespace paceline::config
