// Requests of the command line to a running service.
#pragma once

#include <sys/types.h>

#include <string>

#include "dataplane/attach/message_socket.h"

namespace paceline::tools {

// Process id of the service at a socket; 0: none answers, see `error`.
struct ServicePeer {
  pid_t pid = 0;
  std::string error;
  int code = 0;  // an errno
};
ServicePeer service_peer(const std::string& socket, timeval patience = attach::kConnectPatience);

// The service's status, JSON. Waits for an answer at most five seconds.
struct ServiceStatus {
  std::string json;
  std::string error;
  int code = 0;  // an errno, where there is one
};
ServiceStatus service_status(const std::string& socket);

// Reads everything behind a descriptor, from its beginning: a long answer of a service.
std::string read_long_answer(int file);

}  // namespace paceline::tools
