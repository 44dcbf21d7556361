// paceline, the command line.

#include <exception>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "tools/cli.h"

int main(int argc, char** argv) {
  namespace tools = paceline::tools;
  CLI::App app{
      "Paceline: RDMA congestion control in virtual time, on a loopback testbed and on a NIC"};
  app.set_version_flag("--version", "paceline " PACELINE_VERSION);
  app.require_subcommand(1);
  app.footer(
      "Start here:  paceline ab configs/experiments/first.toml\n"
      "Each command explains itself: paceline COMMAND --help");
  int exit_code = tools::kExitGood;
  tools::add_ab_command(app, exit_code);
  tools::add_emulate_command(app, exit_code);
  tools::add_cc_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int status = app.exit(error);
    return status == 0 ? tools::kExitGood : tools::kExitBadInput;
  } catch (const std::exception& error) {
    fmt::print(stderr, "paceline: error: {}\n", error.what());
    return tools::kExitFailed;
  }
  return exit_code;
}
