// The NICs of a running testbed, and how to start a rank on one of them.
#pragma once

#include <string>
#include <vector>

#include "dataplane/config/toml/diagnostics.h"

namespace paceline::tools {

// The NICs of the testbed, in its order. If there are none, `errors` is empty, because the program
// that looked has printed the reason.
config::Read<std::vector<std::string>> testbed_nics(const std::string& testbed);

// Why no rank can be started here; empty: they can.
std::vector<std::string> rank_program_errors();

// The command that runs paceline-rank with these options on a NIC.
std::vector<std::string> rank_command(const std::string& testbed, const std::string& nic,
                                      const std::vector<std::string>& options);

}  // namespace paceline::tools
