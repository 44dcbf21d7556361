// Where the sockets of running services are: programs of one user find each other's testbeds by
// name.
#pragma once

#include <string>

namespace paceline::tools {

inline constexpr const char* kDefaultTestbed = "default";

// $XDG_RUNTIME_DIR/paceline; /run/paceline for root; else /tmp/paceline-UID. Not created.
std::string runtime_folder();

// Creates it, accessible to its owner only. Returns why that failed; empty: it exists and is ours.
std::string make_runtime_folder(const std::string& folder);

// The socket of the service that runs the testbed of that name.
std::string service_socket(const std::string& testbed);

// The socket at which a command looks for a service: `given`, if not empty; else, for the default
// testbed, PACELINE_SOCKET, which programs under `paceline exec` and `paceline ci` have; else
// service_socket().
std::string socket_to_reach(const std::string& testbed, const std::string& given);

}  // namespace paceline::tools
