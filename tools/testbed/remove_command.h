// `paceline testbed remove`: takes NICs out of a running testbed.
#pragma once

#include <string>
#include <vector>

namespace paceline::tools {

// Returns an exit status. `how_else`: options by which a testbed would be started at that socket.
int remove_nics(const std::vector<std::string>& nics, const std::string& socket,
                const std::string& how_else);

}  // namespace paceline::tools
