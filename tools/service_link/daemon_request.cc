#include "tools/service_link/daemon_request.h"

#include <cstdlib>

#include <fmt/format.h>

#include "dataplane/base/text/printable.h"
#include "tools/cli/cli.h"
#include "tools/service_link/runtime_folder.h"

namespace paceline::tools {

void DaemonOptions::add_to(const config::Command& command) {
  command
      .option("--daemon", socket,
              "socket of pacelined's API (default: $PACELINED_SOCKET, else pacelined.sock "
              "in the runtime folder)")
      .type("PATH");
  command.flag("--json", json, "the daemon's answer, for machines");
}

std::string daemon_socket(const DaemonOptions& options) {
  if (!options.socket.empty()) return options.socket;
  if (const char* const named = std::getenv("PACELINED_SOCKET"); named != nullptr && *named != 0) {
    return named;
  }
  return runtime_folder() + "/pacelined.sock";
}

std::optional<daemon::Json> ask_daemon(const DaemonOptions& options, const std::string& method,
                                       const std::string& target, const daemon::Json& body,
                                       int& code) {
  const daemon::Answer answer =
      daemon::Client(daemon_socket(options)).request(method, target, body);
  if (answer.good()) {
    code = kExitGood;
    return answer.body;
  }
  if (!answer.error.empty()) {
    fmt::print(stderr, "paceline: error: pacelined at {}\n", printable(answer.error));
    code = kExitFailed;
    return std::nullopt;
  }
  std::string_view rest;
  const std::string complaint = answer.complaint();
  for (rest = complaint; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    if (end != 0) fmt::print(stderr, "paceline: error: {}\n", printable(rest.substr(0, end)));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  code = answer.status < 500 ? kExitBadInput : kExitFailed;
  return std::nullopt;
}

std::string json_line(const daemon::Json& json) {
  return json.dump(-1, ' ', true, daemon::Json::error_handler_t::replace);
}

}  // namespace paceline::tools
