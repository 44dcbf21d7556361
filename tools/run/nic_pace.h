// How the messages of each NIC of a world fared, and which NIC is slow.
#pragma once

#include <vector>

#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/run/job_report.h"

namespace paceline::tools {

// By NIC, of a world whose job has ended.
std::vector<NicPace> nic_paces(const VirtualWorld& world);

// Appends the NIC that is slow, if one is.
void find_slow_nic(const std::vector<NicPace>& nics, std::vector<Straggler>& out);

}  // namespace paceline::tools
