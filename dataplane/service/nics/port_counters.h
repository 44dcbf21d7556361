// The counters of an instance under the names that they have in sysfs, in `counters` and
// `hw_counters` of a port.
#pragma once

#include <vector>

#include "dataplane/attach/protocol.h"
#include "dataplane/telemetry/counters.h"

namespace paceline::service {

std::vector<attach::PortCounter> port_counters(const telemetry::EngineCounters& counters);

}  // namespace paceline::service
