// The registered memory of this process, which all its open devices share (dataplane/verbs/memory).
#pragma once

#include "dataplane/verbs/memory/registration_map.h"

namespace paceline::verbs {

// Made when the first device is opened, as PACELINE_MEMORY says (auto, share, copy), and there as
// long as the process: regions that a program leaves behind, and fork, need it to the end. May
// throw std::bad_alloc.
RegistrationMap& process_memory();

}  // namespace paceline::verbs
