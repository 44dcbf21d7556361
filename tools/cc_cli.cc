// `paceline cc`: wiring of tools/cc_command.h to the command line.

#include <iostream>
#include <memory>

#include "tools/cc_command.h"
#include "tools/cli.h"

namespace paceline::tools {

namespace {

CcFormat format_of(bool json, bool markdown) {
  if (json) return CcFormat::json;
  return markdown ? CcFormat::markdown : CcFormat::text;
}

struct CcOptions {
  CcShowOptions show;
  double link_gbps = 100;
  bool json = false;
  bool markdown = false;
};

}  // namespace

void add_cc_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CcOptions>();
  CLI::App* command =
      app.add_subcommand("cc", "congestion-control algorithms and their parameters");
  command->require_subcommand(1);
  command->footer(
      "Examples:\n"
      "  paceline cc list\n"
      "  paceline cc show cadence");

  CLI::App* list = command->add_subcommand("list", "every algorithm, its kind and its profiles");
  list->add_flag("--json", options->json, "print JSON");
  list->footer("Example:\n  paceline cc list --json");
  list->callback([options, &exit_code] {
    exit_code = run_cc_list(std::cout, format_of(options->json, false));
  });

  CLI::App* show = command->add_subcommand(
      "show", "an algorithm's parameters: value, unit, range, meaning, source");
  show->add_option("NAME", options->show.name, "algorithm (paceline cc list)")->required();
  show->add_option("--profile", options->show.profile, "values of this profile")
      ->type_name("PROFILE");
  show->add_option("--link-rate", options->link_gbps,
                   "link rate in Gb/s that scaled values are shown for")
      ->check(CLI::Range(0.001, 10'000.0))
      ->type_name("GBPS")
      ->capture_default_str();
  show->add_flag("--json", options->json, "print JSON");
  show->add_flag("--markdown", options->markdown, "print a Markdown table of all profiles");
  show->footer(
      "Examples:\n"
      "  paceline cc show dcqcn --profile paper\n"
      "  paceline cc show dcqcn --profile hpcc-repo --link-rate 400 --json");
  show->callback([options, &exit_code] {
    options->show.format = format_of(options->json, options->markdown);
    options->show.link_rate = Rate{static_cast<std::uint64_t>(options->link_gbps * 1e9)};
    exit_code = run_cc_show(std::cout, std::cerr, options->show);
  });
}

}  // namespace paceline::tools
