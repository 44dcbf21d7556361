// DPDK's environment for a test executable: started with the first case that wants it.
#pragma once

#include "dataplane/port/dpdk/dpdk_eal.h"

namespace paceline::test {

// Throws std::runtime_error with EAL's words when it cannot be started: the test then fails.
Eal& eal();
// Has a case before this one, in this process, started it? Under ctest none has.
bool eal_is_up();

}  // namespace paceline::test
