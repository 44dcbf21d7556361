// paceline, the command line.

#include <algorithm>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "dataplane/config/diagnostics.h"
#include "tools/cli.h"
#include "tools/host/experiment_command.h"
#include "tools/host/guard_command.h"

namespace {

// What is wrong with the command line, and whose --help explains it.
int refuse(const CLI::App& app, const std::string& first, const CLI::ParseError& error) {
  std::string command = "paceline";
  std::vector<std::string_view> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) {
    names.push_back(sub->get_name());
  }
  if (!first.empty() && first[0] != '-' &&
      std::find(names.begin(), names.end(), first) == names.end()) {
    fmt::print(stderr, "paceline: error: no command '{}'; there are {}\n", first,
               paceline::config::list_names(names));
  } else {
    fmt::print(stderr, "paceline: error: {}\n", error.what());
    for (const CLI::App* sub = &app; !sub->get_subcommands().empty();) {
      sub = sub->get_subcommands().front();
      command += " " + sub->get_name();
    }
  }
  fmt::print(stderr, "See {} --help\n", command);
  return paceline::tools::kExitBadInput;
}

}  // namespace

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
  tools::add_report_command(app, exit_code);
  tools::add_league_command(app, exit_code);
  tools::add_emulate_command(app, exit_code);
  tools::add_cc_command(app, exit_code);
  tools::add_tune_command(app, exit_code);
  tools::add_tuner_command(app, exit_code);
  tools::add_agree_command(app, exit_code);
  tools::add_capture_command(app, exit_code);
  tools::add_replay_command(app, exit_code);
  tools::add_join_command(app, exit_code);
  tools::add_exec_command(app, exit_code);
  tools::add_testbed_command(app, exit_code);
  tools::add_top_command(app, exit_code);
  tools::add_params_command(app, exit_code);
  tools::add_explain_command(app, exit_code);
  tools::add_guard_command(app, exit_code);
  tools::add_experiment_command(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return refuse(app, argc > 1 ? argv[1] : "", error);
  } catch (const std::exception& error) {
    fmt::print(stderr, "paceline: error: {}\n", error.what());
    return tools::kExitFailed;
  }
  return exit_code;
}
