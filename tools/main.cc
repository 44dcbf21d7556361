// paceline, the command line.

#include <exception>
#include <span>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "dataplane/base/build_version.h"
#include "tools/cli.h"
#include "tools/command_line.h"

int main(int argc, char** argv) {
  namespace tools = paceline::tools;
  CLI::App app{
      "Paceline: RDMA congestion control in virtual time, on a loopback testbed and on a NIC"};
  app.set_version_flag("--version", std::string("paceline ") + paceline::build_version());
  app.require_subcommand(1);
  app.footer(
      "Start here:  paceline ab configs/experiments/first.toml\n"
      "Each command explains itself: paceline COMMAND --help");
  int exit_code = tools::kExitGood;
  tools::add_commands(app, exit_code);
  const auto refuse = [](const std::string& error, const std::string& command) {
    fmt::print(stderr, "paceline: error: {}\nSee {} --help\n", error, command);
    return tools::kExitBadInput;
  };
  const tools::CommandLineFault fault =
      tools::find_fault(app, std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0));
  if (!fault.error.empty()) return refuse(fault.error, fault.command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return refuse(tools::words_for(error), fault.command);
  } catch (const std::exception& error) {
    fmt::print(stderr, "paceline: error: {}\n", error.what());
    return tools::kExitFailed;
  }
  return exit_code;
}
