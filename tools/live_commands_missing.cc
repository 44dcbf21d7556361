#include <string>

#include <fmt/format.h>

#include "tools/cli/cli.h"
#include "tools/diagnose/watch_testbed.h"
#include "tools/live_commands.h"

namespace paceline::tools {

void add_live_commands(const config::Command& app, int& exit_code) {
  for (const char* name : {"tuner", "capture", "replay", "join", "exec", "ci", "testbed", "mesh",
                           "top", "params", "explain", "guard", "experiment"}) {
    const config::Command command =
        app.subcommand(name, "not built: tools/quickstart --all builds it");
    command.prefix_command();
    command.callback([name, &exit_code] {
      exit_code = report_errors({fmt::format(
          "{}: not built: this is the emulator alone; tools/quickstart --all builds every command",
          name)});
    });
  }
}

WatchedTestbed watch_testbed(const WatchRequest&, const std::function<void(double, double)>&) {
  WatchedTestbed out;
  out.errors = {
      "--testbed, --fleet, --replay: not built: this is the emulator alone; tools/quickstart --all "
      "builds it"};
  out.exit_code = kExitBadInput;
  return out;
}

}  // namespace paceline::tools
