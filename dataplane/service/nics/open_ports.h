// Opens ports of this machine for a service. Two files implement it: with DPDK, and without, where
// it returns an error.
#pragma once

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/service/nics/make_nic_sets.h"

namespace paceline::service {

// One set, and so one worker, for each [[port]] or bond of ports. Requires a file that is fit for a
// service (config::service_problems). Call it once in a process.
MadeNicSets open_port_nics(const config::Testbed& testbed);

}  // namespace paceline::service
