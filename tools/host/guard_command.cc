// `paceline guard`: what the guard of a running host has seen, and its latch, through pacelined.
#include "tools/host/guard_command.h"

#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataplane/base/text/printable.h"
#include "tools/cli/cli.h"
#include "tools/host/guard_text.h"
#include "tools/service_link/daemon_request.h"

namespace paceline::tools {

namespace {

using daemon::Json;

struct GuardOptions {
  DaemonOptions daemon;
  std::vector<std::string> nics;
  std::string why;
};

int show_guard(const GuardOptions& options) {
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, "GET", "/v1/guard", nullptr, code);
  if (!answer) return code;
  if (options.daemon.json) {
    fmt::print("{}\n", json_line(*answer));
  } else {
    fmt::print("{}", printable_lines(guard_status_text(*answer)));
  }
  return kExitGood;
}

int clear_guard(const GuardOptions& options) {
  Json body{{"why", options.why}};
  if (!options.nics.empty()) body["nics"] = options.nics;
  int code = kExitGood;
  const auto answer = ask_daemon(options.daemon, "DELETE", "/v1/guard", body, code);
  if (!answer) return code;
  if (options.daemon.json) {
    fmt::print("{}\n", json_line(*answer));
  } else {
    fmt::print(
        "cleared on {}: trials may start there again\n",
        options.nics.empty() ? "all NICs" : fmt::format("{}", fmt::join(options.nics, ", ")));
  }
  return kExitGood;
}

}  // namespace

void add_guard_command(const config::Command& app, int& exit_code) {
  const config::Command command = app.subcommand(
      "guard", "The guard of a running host: its limits, what tripped it, and its latch");
  command.require_subcommand(0, 1);
  auto options = std::make_shared<GuardOptions>();
  options->daemon.add_to(command);
  const config::Command status = command.subcommand("status", "limits and trips (the default)");
  options->daemon.add_to(status);
  const config::Command clear =
      command.subcommand("clear", "let trials start again on NICs with a latched trip");
  options->daemon.add_to(clear);
  clear.option("--nic", options->nics, "this NIC (repeatable; default: all)").one_by_one();
  clear.option("--why", options->why, "the reason, for the journal").required();
  command.footer(
      "When a candidate trips the guard, the champion is put back and the trip is latched: no\n"
      "trial starts on that NIC until an operator clears the trip.\n"
      "Examples:\n"
      "  paceline guard\n"
      "  paceline guard clear --nic h0 --why \"the plan had the wrong limit\"\n"
      "Exit status: 0 good, 1 no daemon, or it cannot do this, 2 bad input.");
  command.callback([options, command, clear, &exit_code] {
    exit_code = command.got_subcommand(clear) ? clear_guard(*options) : show_guard(*options);
  });
}

}  // namespace paceline::tools
