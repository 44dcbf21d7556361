// `paceline cc`: wiring of tools/plugin/cc_command.h to the command line.

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "tools/cli/cli.h"
#include "tools/plugin/cc_command.h"
#include "tools/plugin/cc_plugin_command.h"

namespace paceline::tools {

namespace {

CcFormat format_of(bool json) { return json ? CcFormat::json : CcFormat::text; }

struct CcOptions {
  CcShowOptions show;
  double link_gbps = 100;
  bool json = false;
  std::vector<std::string> plugins;
  std::string plugin;  // of `new` its name, of `check` its file
  std::string folder;
  std::string language = "c";
  bool receiver = false;
  bool rates = false;
  bool no_cost = false;
};

std::size_t terminal_width() {
  constexpr std::size_t kLeast = 60;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return kTextColumns;
  }
  return size.ws_col == 0 ? kTextColumns : std::max<std::size_t>(size.ws_col, kLeast);
}

// Loads all or none: a plug-in that cannot be loaded is an error.
bool load_all(const std::vector<std::string>& paths) {
  for (const std::string& path : paths) {
    const cc::Registered loaded = algorithm_of("plugin:" + path);
    if (loaded.info != nullptr) continue;
    report_errors({loaded.error});
    return false;
  }
  return true;
}

void add_plugin_commands(const config::Command& command, const std::shared_ptr<CcOptions>& options,
                         int& exit_code) {
  const config::Command make =
      command.subcommand("new", "write a plug-in to start from: it works as it is");
  make.option("NAME", options->plugin, "name of the algorithm, and of the folder").required();
  make.option("--lang", options->language, "language of the algorithm")
      .one_of({"c", "c++"})
      .shows_default();
  make.flag("--receiver", options->receiver,
            "with a receiving half: a port grants its senders what they may send (C)");
  make.flag("--rates", options->rates,
            "with rates: senders ask, a port answers with a rate that holds for a time (C)");
  make.option("--folder", options->folder, "folder to write to (default: NAME)");
  make.footer(
      "Examples:\n"
      "  paceline cc new mine --lang c++\n"
      "  paceline cc new mine --receiver\n"
      "  paceline cc new mine --rates");
  make.callback([options, &exit_code] {
    PluginKind kind = options->language == "c" ? PluginKind::c : PluginKind::cpp;
    if (options->receiver && options->rates) {
      exit_code = report_errors({"--receiver, --rates: allowed is one of them"});
      return;
    }
    if ((options->receiver || options->rates) && kind == PluginKind::cpp) {
      const char* const flag = options->receiver ? "--receiver" : "--rates";
      exit_code = report_errors({std::string(flag) + ": there is none in c++, only in c"});
      return;
    }
    if (options->receiver) kind = PluginKind::receiver;
    if (options->rates) kind = PluginKind::rates;
    exit_code = run_cc_new(std::cout, std::cerr, options->plugin, kind, options->folder);
  });

  const config::Command check =
      command.subcommand("check", "load a plug-in, run it in small networks, measure its cost");
  check.option("PLUGIN", options->plugin, "file of the plug-in; its code is run").required();
  check.flag("--no-cost", options->no_cost, "do not measure the cost");
  check.footer("Example:\n  paceline cc check mine/build/mine.so");
  check.callback([options, &exit_code] {
    exit_code = run_cc_check(std::cout, std::cerr, options->plugin, !options->no_cost);
  });
}

}  // namespace

void add_cc_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<CcOptions>();
  const config::Command command =
      app.subcommand("cc", "congestion-control algorithms and their parameters");
  command.require_subcommand();
  command.footer(
      "Examples:\n"
      "  paceline cc list\n"
      "  paceline cc show cadence");

  const config::Command list =
      command.subcommand("list", "every algorithm, its kind and its profiles");
  list.flag("--json", options->json, "print JSON");
  list.option("--plugin", options->plugins, "file of a plug-in to list, too; may be repeated");
  list.footer("Example:\n  paceline cc list --json");
  list.callback([options, &exit_code] {
    if (!load_all(options->plugins)) {
      exit_code = kExitBadInput;
      return;
    }
    exit_code = run_cc_list(std::cout, format_of(options->json), terminal_width());
  });

  add_plugin_commands(command, options, exit_code);

  const config::Command show =
      command.subcommand("show", "an algorithm's parameters: value, unit, range, meaning, source");
  show.option("NAME", options->show.name, "algorithm (paceline cc list), or file of a plug-in")
      .required();
  show.option("--profile", options->show.profile, "values of this profile").type("PROFILE");
  show.option("--link-rate", options->link_gbps,
              "link rate in Gb/s that scaled values are shown for")
      .within(0.001, 10'000.0)
      .type("GBPS")
      .shows_default();
  show.flag("--json", options->json, "print JSON");
  show.footer(
      "Examples:\n"
      "  paceline cc show dcqcn --profile paper\n"
      "  paceline cc show dcqcn --profile hpcc-repo --link-rate 400 --json");
  show.callback([options, &exit_code] {
    options->show.format = format_of(options->json);
    options->show.width = terminal_width();
    options->show.link_rate = Rate{static_cast<std::uint64_t>(options->link_gbps * 1e9)};
    exit_code = run_cc_show(std::cout, std::cerr, options->show);
  });
}

}  // namespace paceline::tools
