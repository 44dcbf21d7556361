// Shared by commands that ask pacelined: its socket, and the error if it does not answer.
#pragma once

#include <optional>
#include <string>

#include "control/daemon/api/client/client.h"
#include "dataplane/config/command/command.h"

namespace paceline::tools {

struct DaemonOptions {
  std::string socket;  // of the API; empty: the usual one
  bool json = false;

  void add_to(const config::Command& command);
};

// $PACELINED_SOCKET, or pacelined.sock in the runtime folder.
std::string daemon_socket(const DaemonOptions& options);

// The answer if it is good; otherwise reports what is wrong and sets the exit code in `code`: 2 if
// the request was bad, else 1.
std::optional<daemon::Json> ask_daemon(const DaemonOptions& options, const std::string& method,
                                       const std::string& target, const daemon::Json& body,
                                       int& code);

// On one line and in ASCII: a terminal takes no text in it for a command.
std::string json_line(const daemon::Json& json);

}  // namespace paceline::tools
