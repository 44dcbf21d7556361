// The operator's description of a fabric, as the rules of diagnosis take it.
#pragma once

#include "control/diagnosis/evidence.h"
#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "tools/workload/files/hpcc_format.h"

namespace paceline::tools {

// Sets the links, the NICs' names and rates, and the rest of the description. `scenario` is
// prepared (its files are read).
void describe_fabric(const config::Scenario& scenario, const workload::NodeNumbers& numbers,
                     const fabric::FabricSpec& spec, diagnosis::Evidence& out);

}  // namespace paceline::tools
