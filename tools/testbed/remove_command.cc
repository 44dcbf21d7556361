#include "tools/testbed/remove_command.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataplane/service/protocol/control_protocol.h"
#include "tools/cli/cli.h"
#include "tools/service_link/control_request.h"
#include "tools/service_link/service_absence.h"

namespace paceline::tools {

int remove_nics(const std::vector<std::string>& nics, const std::string& socket,
                const std::string& how_else) {
  ControlConnection connection;
  const std::string control = service::control_socket_beside(socket);
  int error = connection.open(control);
  if (error == 0) {
    const ControlConnection::Answer answer = connection.ask({{"op", "take_away"}, {"nics", nics}});
    if (!answer.errors.empty()) return report_errors(answer.errors);
    error = answer.code;
  }
  if (error != 0) {
    fmt::print(stderr, "paceline: error: {}\n", service_absence(control, error, "", how_else));
    return kExitFailed;
  }
  fmt::print("removed: {}; a testbed that is started again has all its NICs\n",
             fmt::join(nics, ", "));
  return kExitGood;
}

}  // namespace paceline::tools
