// The error, with advice, if a service cannot be reached at a socket.
#pragma once

#include <string>

namespace paceline::tools {

// Options with which `testbed up` starts the testbed of that name, or the one at `socket`: "",
// " --name x" or " --socket x".
std::string options_to_start(const std::string& name, const std::string& socket);

// `error`: an errno or 0, `why`: its text or a better one; `options`: from options_to_start().
std::string service_absence(const std::string& socket, int error, const std::string& why,
                            const std::string& options);

}  // namespace paceline::tools
