// Looks at the service of this machine.
#pragma once

#include <memory>
#include <string>

#include "tools/diagnose/testbed/host_looks.h"

namespace paceline::tools {

// The service at a socket: one host. Null, and an error with its errno: it cannot be looked at.
std::unique_ptr<HostLooks> local_looks(const std::string& socket, std::string& error, int& code);

}  // namespace paceline::tools
