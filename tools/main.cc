// paceline, the command line.

#include <exception>
#include <string>

#include <fmt/format.h>

#include "dataplane/base/build_version.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/command_line.h"
#include "tools/cli/cli.h"
#include "tools/commands.h"

int main(int argc, char** argv) {
  namespace tools = paceline::tools;
  const paceline::config::Command app{
      "Paceline: RDMA congestion control in virtual time, on a loopback testbed and on a NIC"};
  app.version(std::string("paceline ") + paceline::build_version());
  app.require_subcommand();
  app.footer(
      "Start here:  paceline ab configs/experiments/first.toml\n"
      "Each command explains itself: paceline COMMAND --help");
  int exit_code = tools::kExitGood;
  tools::add_commands(app, exit_code);
  try {
    if (const auto ended = paceline::config::read_command_line(app, argc, argv, "paceline"))
      return *ended;
  } catch (const std::exception& error) {
    fmt::print(stderr, "paceline: error: {}\n", paceline::printable_lines(error.what()));
    return tools::kExitFailed;
  }
  return exit_code;
}
