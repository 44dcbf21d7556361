// `paceline join`: the emulated fabric of a scenario between ports of this machine.

#include <algorithm>
#include <memory>
#include <stdexcept>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataplane/config/scenario/scenario_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "dataplane/driver/ports/fabric_bridge.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "tools/capture/capture_files.h"
#include "tools/cli/cli.h"
#include "tools/ports/opened_ports.h"

namespace paceline::tools {

namespace {

struct JoinOptions {
  InputOptions input;
  std::string testbed;
  std::vector<std::string> attach;
  std::string duration;
  LinkCaptureOptions captures;
  bool quiet = false;
};

struct AttachedName {
  std::uint32_t host = 0;
  std::string port;
};

// "3=name".
std::vector<AttachedName> read_attachments(const std::vector<std::string>& texts,
                                           std::vector<std::string>& errors) {
  std::vector<AttachedName> out;
  for (const std::string& text : texts) {
    const std::size_t equals = text.find('=');
    const std::string number = text.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == text.size() || number.empty() ||
        number.size() > 6 || number.find_first_not_of("0123456789") != std::string::npos) {
      errors.push_back("--attach " + text + ": allowed is HOST=PORT, as in 3=host0");
      continue;
    }
    out.push_back({static_cast<std::uint32_t>(std::stoul(number)), text.substr(equals + 1)});
  }
  return out;
}

std::string join_text(const FabricBridge& bridge, const std::vector<AttachedName>& names,
                      const fabric::NetworkStats& stats, Picos end) {
  std::string text = fmt::format(
      "joined     {} ports for {:.3f} s; {} packets entered the fabric, {} were delivered, {} "
      "marked\n",
      names.size(), static_cast<double>(end.count) * 1e-12, stats.injected_packets,
      stats.delivered_packets, stats.marked_packets);
  std::vector<std::string> drops;
  for (std::size_t i = 0; i < fabric::kDropReasons; ++i) {
    if (stats.drops[i] == 0) continue;
    drops.push_back(fmt::format("{} {}", stats.drops[i],
                                fabric::to_string(static_cast<fabric::DropReason>(i))));
  }
  text += fmt::format("drops      {}\n",
                      drops.empty() ? "none" : fmt::format("{}", fmt::join(drops, ", ")));
  text += fmt::format("{:<10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}\n", "port", "rx", "tx",
                      "flooded", "rx_full", "tx_full", "damaged", "other");
  for (std::size_t i = 0; i < names.size(); ++i) {
    const BridgeCounters& c = bridge.counters(i);
    text +=
        fmt::format("{:<10} {:>10} {:>10} {:>9} {:>9} {:>9} {:>9} {:>9}\n", names[i].port,
                    c.rx_packets, c.tx_packets, c.rx_flooded, c.rx_full, c.tx_full, c.tx_damaged,
                    c.rx_too_long + c.rx_nowhere + c.tx_no_packet + c.tx_bad_frame);
  }
  const Histogram& late = bridge.lateness_ns();
  text += fmt::format("lateness   p50 {:.1f} us, p99 {:.1f}, most {:.1f}\n",
                      static_cast<double>(late.quantile(0.5)) / 1e3,
                      static_cast<double>(late.quantile(0.99)) / 1e3,
                      static_cast<double>(late.quantile(1)) / 1e3);
  return text;
}

int run(const JoinOptions& options) {
  std::vector<std::string> errors;
  const std::vector<AttachedName> names = read_attachments(options.attach, errors);
  Picos duration = kNever;
  if (!options.duration.empty()) {
    const auto time = config::parse_time(options.duration);
    if (!time.ok()) errors.push_back("--duration " + options.duration + ": " + time.error);
    duration = time.value;
  }
  if (!errors.empty()) return report_errors(errors);
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.input.overrides();
  auto read = config::read_scenario_file(options.input.file, reader);
  if (!read.ok()) return report_errors(read.errors);
  const WorldPlan plan = plan_world(read.value);
  if (!plan.error.empty()) return report_errors({options.input.file + ": " + plan.error});
  for (const AttachedName& name : names) {
    if (name.host < plan.fabric.hosts) continue;
    errors.push_back(fmt::format("--attach {}={}: the hosts of {} are 0 to {}", name.host,
                                 name.port, options.input.file, plan.fabric.hosts - 1));
  }
  if (!errors.empty()) return report_errors(errors);
  const PortsOpening opening = open_ports(options.testbed);
  if (!opening.errors.empty()) return report_errors(opening.errors);
  std::vector<BridgePort> ports;
  for (const AttachedName& name : names) {
    Port* const port = opening.ports->find(name.port);
    if (port == nullptr) {
      errors.push_back(fmt::format("--attach {}={}: no such port: {} has {}", name.host, name.port,
                                   options.testbed, fmt::join(opening.ports->names(), ", ")));
    }
    ports.push_back({name.host, port});
  }
  if (!errors.empty()) return report_errors(errors);
  if (!options.quiet) {
    for (const std::string& line : opening.ports->report()) fmt::print(stderr, "{}\n", line);
  }
  TscWallClock clock;
  CaptureFiles captures;
  try {
    FabricBridge bridge(plan.fabric, ports);
    if (errors = captures.open(read.value, workload::NodeNumbers{}, options.captures, since_1970());
        !errors.empty()) {
      return report_errors(errors);
    }
    for (const LinkTapping& tapping : captures.taps()) {
      bridge.network().tap(tapping.link, *tapping.tap);
    }
    const Interrupt interrupt;
    if (!options.quiet) fmt::print(stderr, "joined; Ctrl-C ends it\n");
    const Picos end = bridge.run(clock, Interrupt::flag(), duration);
    if (errors = captures.finish(end); !errors.empty()) return report_errors(errors);
    fmt::print(stderr, "{}", captures.warnings());
    if (!options.quiet) {
      fmt::print("{}{}", join_text(bridge, names, bridge.network().stats(), end),
                 captures.summary());
    }
  } catch (const std::invalid_argument& error) {
    return report_errors({error.what()});
  }
  return kExitGood;
}

}  // namespace

void add_join_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<JoinOptions>();
  const config::Command command =
      app.subcommand("join", "put the emulated fabric of a scenario between ports of this machine");
  options->input.add_to(command, "scenario (TOML): its [fabric] and [[event]]s; docs/scenarios.md",
                        true);
  take_shipped_files(
      command.option("--testbed", options->testbed, "the ports of this machine (docs/ports.md)")
          .type("FILE.toml")
          .required());
  command
      .option("--attach", options->attach,
              "connect host HOST of the fabric to this port of the testbed file "
              "(repeatable)")
      .type("HOST=PORT")
      .required()
      .one_by_one();
  command.option("--duration", options->duration, "end after this time").type("TIME");
  options->captures.add_to(command);
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.footer(
      "A frame received on a port enters the fabric on that host's link; frames that the fabric\n"
      "delivers to the host leave through the port. Switches queue, mark and pause. Links have\n"
      "the scenario's rate, delay, loss, damage, duplicates and reordering; its [[event]]s happen\n"
      "at their times after the start. The fabric learns MAC addresses as a switch does, so ARP,\n"
      "neighbour discovery and all other traffic pass. The scenario's own traffic ([workload]) is\n"
      "not run: all frames come from the ports.\n"
      "--capture writes the frames on a link in both directions, and marks those dropped there.\n"
      "Examples:\n"
      "  paceline join fabric.toml --testbed two-ports.toml --attach 0=host0 --attach 1=host1\n"
      "  paceline join fabric.toml --testbed t.toml --attach 0=a --attach 1=b \\\n"
      "      --set fabric.loss=0.001 --set fabric.delay=50us --duration 60s\n"
      "  paceline join fabric.toml --testbed t.toml --attach 0=a --attach 1=b --capture "
      "host0.pcapng\n"
      "Exit status: 0 good (also after Ctrl-C), 2 bad input.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
