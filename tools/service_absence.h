// What to say when a service cannot be reached at a socket, and what to do about it.
#pragma once

#include <string>

namespace paceline::tools {

// `error`: an errno, `why`: its text or a better one; `how_to_name`: " --name x" or " --socket x"
// where the advice must say so, so that who follows it starts the testbed that was asked for.
std::string service_absence(const std::string& socket, int error, const std::string& why,
                            const std::string& how_to_name);

}  // namespace paceline::tools
