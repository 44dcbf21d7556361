// Opens ports of this machine for a service. Two files implement it: with DPDK, and without, where
// it returns an error.
#pragma once

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/service/nics/make_nic_sets.h"

namespace paceline::service {

// A set, and so a worker, for each [[port]] or bond of them. The file is fit for a service
// (config::service_problems). Once in a process.
MadeNicSets open_port_nics(const config::Testbed& testbed);

}  // namespace paceline::service
