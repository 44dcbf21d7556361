// Makes what the service serves, from a testbed file.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "dataplane/config/testbed/testbed.h"
#include "dataplane/service/nics/nic_set.h"

namespace paceline::service {

struct MadeNicSets {
  std::vector<std::unique_ptr<NicSet>> sets;  // a worker each
  std::vector<std::string> errors;            // with any, no set
  std::vector<std::string> notes;             // what was opened: a line each, for a log
};

// One of emulated hosts (open_ports.h has the other kind). The testbed was read without errors
// (config/testbed/testbed_reader.h); what can still be wrong is what only the whole shows.
MadeNicSets make_nic_sets(const config::Testbed& testbed);

}  // namespace paceline::service
