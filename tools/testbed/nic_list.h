// Lists the NIC instances of the service at a socket.
#pragma once

#include <string>
#include <vector>

#include "dataplane/attach/protocol.h"

namespace paceline::tools {

struct NicListing {
  std::vector<attach::NicInfo> nics;
  std::string error;
  int code = 0;                         // an errno, where there is one
  std::string version{};                // of the service
  std::vector<std::string> counters{};  // of a port, as attach::PortCounter; none: an older service
};

// Waits for an answer at most five seconds.
NicListing list_nics(const std::string& socket);

}  // namespace paceline::tools
