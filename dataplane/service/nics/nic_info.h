// Description of a NIC instance, from the configuration of its engine.
#pragma once

#include <cstdint>
#include <string>

#include "dataplane/attach/protocol.h"
#include "dataplane/base/units.h"
#include "dataplane/port/port.h"
#include "dataplane/service/nics/nic_set.h"
#include "dataplane/transport/core/engine_config.h"

namespace paceline::service {

// The name is cut to what fits. GIDs: the IPv4 address, then the IPv6 address, as far as there are.
attach::NicInfo nic_info(const std::string& name, const transport::EngineConfig& config, Rate rate,
                         std::uint16_t local_id);

// Its initial congestion control; profiles are the names from which its values came.
NicCongestion nic_congestion(const transport::EngineConfig& config, const PortInfo& port,
                             const std::string& profile, const std::string& fallback_profile);

// For a running capture; on the worker's thread.
CaptureReport capture_report(const CaptureRingWriter& ring);

}  // namespace paceline::service
