// Ports of this machine, opened for a service. One of two files says how: with DPDK, or that there
// is none.
#pragma once

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/service/nics/make_nic_sets.h"

namespace paceline::service {

// A set, and so a worker, for each [[port]]. The file is fit for a service
// (config::service_problems). Once in a process.
MadeNicSets open_port_nics(const config::Testbed& testbed);

}  // namespace paceline::service
