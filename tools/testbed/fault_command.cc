#include "tools/testbed/fault_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>

#include "dataplane/base/numbers/random.h"
#include "dataplane/config/fault_kinds.h"
#include "dataplane/config/scenario/table_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "dataplane/config/toml/toml_tree.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "tools/cli/cli.h"
#include "tools/service_link/control_request.h"
#include "tools/service_link/service_absence.h"
#include "tools/service_link/service_request.h"

namespace paceline::tools {

namespace {

using Json = nlohmann::json;

struct Faults {
  Json events = Json::array();
  std::vector<std::string> errors;
};

constexpr std::size_t kLongestScript = 1 << 20;
constexpr std::size_t kInOneRequest = 400;  // within the length of a message

double micros(Picos time) { return static_cast<double>(time.count) * 1e-6; }

Picos time_of(const std::string& text, std::string_view option, Faults& out) {
  if (text.empty()) return Picos{0};
  const config::Parsed<Picos> time = config::parse_time(text);
  if (!time.ok()) {
    out.errors.push_back(fmt::format("{} {}: {}", option, text, time.error));
  } else if (time.value.count == 0 && option != "--after") {
    out.errors.push_back(fmt::format("{} {}: expected a time above 0", option, text));
  }
  return time.value;
}

// "down", "loss=0.01", "rate=1Gb/s", "delay=20us", "pcie_limit".
void add_change(const FaultOptions& options, const std::string& change, Picos after, Picos lasts,
                Faults& out) {
  const std::size_t equals = change.find('=');
  const std::string action = change.substr(0, equals);
  Json event = {{"target", options.target}, {"action", action}};
  std::string error;
  const config::FaultKindInfo* const kind = config::find_fault_kind(action);
  if (kind != nullptr) {
    if (equals != std::string::npos) {
      out.errors.push_back(fmt::format("{}: how bad it is goes with --severity", change));
      return;
    }
    if (options.severity) event["severity"] = *options.severity;
    if (options.seed) event["seed"] = *options.seed;
  }
  if (equals != std::string::npos) {
    const std::string value = change.substr(equals + 1);
    if (action == "rate") {
      const auto rate = config::parse_rate(value);
      error = rate.error;
      event["rate_mbps"] = static_cast<double>(rate.value.bps) * 1e-6;
    } else if (action == "delay") {
      const auto delay = config::parse_time(value);
      error = delay.error;
      event["delay_ns"] = static_cast<double>(delay.value.count) * 1e-3;
    } else {
      const auto probability = config::parse_in_unit(value, "1");
      error = probability.error;
      event["probability"] = probability.value;
    }
  }
  if (!error.empty()) out.errors.push_back(fmt::format("{}: {}", change, error));
  if (!options.direction.empty()) event["direction"] = options.direction;
  if (after.count != 0) event["after_us"] = micros(after);
  if (lasts.count != 0) event["for_us"] = micros(lasts);
  out.events.push_back(std::move(event));
}

Json event_of(const config::EventConfig& from) {
  Json event = {{"target", from.link}, {"action", from.action}, {"after_us", micros(from.at)}};
  if (from.action == "rate") {
    event["rate_mbps"] = static_cast<double>(from.rate.bps) * 1e-6;
  } else if (from.action == "delay") {
    event["delay_ns"] = static_cast<double>(from.delay.count) * 1e-3;
  } else if (from.action != "down" && from.action != "up") {
    event["probability"] = from.probability;
  }
  if (from.direction != "both") event["direction"] = from.direction;
  return event;
}

Json event_of(const config::FaultConfig& from) {
  Json event = {{"target", from.target}, {"action", from.kind}, {"after_us", micros(from.at)}};
  if (from.lasts != kNever) event["for_us"] = micros(from.lasts);
  if (config::find_fault_kind(from.kind)->most != 0) event["severity"] = from.severity;
  if (from.seed != 0) event["seed"] = from.seed;
  if (from.direction != "both") event["direction"] = from.direction;
  return event;
}

// The [[event]] and [[fault]] tables of a file.
void add_script(const std::string& path, Faults& out) {
  const auto text = config::read_text_file(path, kLongestScript);
  const auto root = text.ok() ? config::parse_toml(text.value, path)
                              : config::Read<config::TomlNode>{{}, text.errors};
  if (!root.ok()) {
    out.errors = root.errors;
    return;
  }
  const config::TomlMember* const events = root.value.find("event");
  const config::TomlMember* const faults = root.value.find("fault");
  const std::size_t known = (events == nullptr ? 0U : 1U) + (faults == nullptr ? 0U : 1U);
  if (known == 0 || root.value.members.size() != known) {
    out.errors.push_back(path + ": expected [[event]] and [[fault]] tables, and nothing else");
    return;
  }
  config::Diagnostics found;
  config::ReadContext context;
  context.errors = &found;
  std::vector<config::EventConfig> of_links;
  std::vector<config::FaultConfig> of_kinds;
  if (events != nullptr) config::read_events(events->value, of_links, context);
  if (faults != nullptr) {
    config::read_faults(faults->value, of_kinds, context, config::FaultPlace::testbed);
  }
  out.errors = found.sorted();
  for (const config::EventConfig& from : of_links) out.events.push_back(event_of(from));
  for (const config::FaultConfig& from : of_kinds) out.events.push_back(event_of(from));
}

// The ports of all NICs, as targets.
std::vector<std::string> ports_of(const std::string& status) {
  std::vector<std::string> ports;
  const Json all = Json::parse(status);
  for (const Json& worker : all.at("workers")) {
    for (const Json& nic : worker.at("nics")) {
      const auto name = nic.at("name").get<std::string>();
      const std::size_t count = nic.contains("ports_up") ? nic["ports_up"].size() : 1;
      for (std::size_t port = 0; port < count; ++port) {
        ports.push_back(count == 1 ? name : fmt::format("{}.{}", name, port));
      }
    }
  }
  return ports;
}

void add_random(const FaultOptions& options, const std::string& socket, Faults& out) {
  const Picos every = time_of(options.every, "--every", out);
  const Picos lasts =
      options.lasts.empty() ? Picos{every.count / 4} : time_of(options.lasts, "--for", out);
  const ServiceStatus status = service_status(socket);
  if (!status.error.empty()) out.errors.push_back(status.error);
  if (!out.errors.empty()) return;
  const std::vector<std::string> ports = ports_of(status.json);
  Random random(options.seed.value_or(1));
  Picos at = time_of(options.after, "--after", out);
  for (std::uint32_t i = 0; i < options.random; ++i) {
    out.events.push_back({{"target", ports[random.below(ports.size())]},
                          {"action", "down"},
                          {"after_us", micros(at)},
                          {"for_us", micros(lasts)}});
    at += every;
  }
}

}  // namespace

void FaultOptions::add_to(const config::Command& command) {
  command.option("TARGET", target,
                 "h0: all ports of a NIC; h0.1: its port 1; or a link, switch, plane or server "
                 "as in an [[event]]: leaf0-spine1, leaf0, plane1, server2");
  command.option("CHANGE", changes,
                 "down, up, loss=0.01, corrupt=, duplicate=, reorder=, rate=1Gb/s, delay=20us, "
                 "clear (all as in the testbed file); or a kind of `paceline faults list`");
  command.option("--severity", severity, "how severe the fault is, in the unit of its kind");
  command.option("--after", after, "begin later: 20ms");
  command.option("--for", lasts, "then restore the testbed file's values: 50ms");
  command
      .option("--direction", direction,
              "disturb only one direction of a link: up (from the host) or down")
      .one_of({"both", "up", "down"});
  command.option("--script", script, "the [[event]] and [[fault]] tables of a file, `at` from now");
  command.option("--random", random, "this many random failures of ports").within(1, 4096);
  command.option("--seed", seed, "seed of --random (default: 1), or of a kind's random choices")
      .within(std::uint64_t{1}, std::uint64_t{1} << 53U);
  command
      .option("--every", every,
              "with --random: time between failures; a port is back after --for, or after a "
              "quarter of this time")
      .shows_default();
}

int inject_faults(const FaultOptions& options, const std::string& socket,
                  const std::string& how_else) {
  Faults faults;
  const int sources = (options.target.empty() ? 0 : 1) + (options.script.empty() ? 0 : 1) +
                      (options.random == 0 ? 0 : 1);
  if (sources != 1 || (!options.target.empty() && options.changes.empty())) {
    return report_errors({"expected one of: TARGET with CHANGEs, --script FILE, --random N"});
  }
  const auto refuse = [&](const std::string& given, std::string_view option, bool does_nothing) {
    if (given.empty() || !does_nothing) return;
    faults.errors.push_back(fmt::format("{} does nothing with {}", option,
                                        options.random != 0 ? "--random" : "--script"));
  };
  refuse(options.direction, "--direction", options.target.empty());
  refuse(options.after, "--after", !options.script.empty());
  refuse(options.lasts, "--for", !options.script.empty());
  const bool of_kind = std::any_of(
      options.changes.begin(), options.changes.end(),
      [](const std::string& change) { return config::find_fault_kind(change) != nullptr; });
  if (options.severity && !of_kind) {
    faults.errors.emplace_back("--severity goes with a kind of `paceline faults list`");
  }
  if (options.seed && !of_kind && options.random == 0) {
    faults.errors.emplace_back("--seed goes with --random, or with a kind");
  }
  if (!options.script.empty()) {
    add_script(options.script, faults);
  } else if (options.random != 0) {
    add_random(options, socket, faults);
  } else {
    const Picos after = time_of(options.after, "--after", faults);
    const Picos lasts = time_of(options.lasts, "--for", faults);
    for (const std::string& change : options.changes) {
      add_change(options, change, after, lasts, faults);
    }
  }
  if (!faults.errors.empty()) return report_errors(faults.errors);

  ControlConnection connection;
  const std::string control = service::control_socket_beside(socket);
  int error = connection.open(control);
  ControlConnection::Answer answer;
  int links = 0;
  for (std::size_t from = 0; error == 0 && from < faults.events.size(); from += kInOneRequest) {
    const auto first = faults.events.begin() + static_cast<std::ptrdiff_t>(from);
    const std::size_t count = std::min(kInOneRequest, faults.events.size() - from);
    const Json some(first, first + static_cast<std::ptrdiff_t>(count));
    answer = connection.ask({{"op", "fault"}, {"events", some}});
    error = answer.code;
    if (!answer.errors.empty()) return report_errors(answer.errors);
    links = std::max(links, answer.body.value("links", 0));
  }
  if (error != 0) {
    fmt::print(stderr, "paceline: error: {}\n", service_absence(control, error, "", how_else));
    return kExitFailed;
  }
  if (options.random != 0) fmt::print("seed {}\n", options.seed.value_or(1));
  fmt::print("faults: {}, of {} link{}\n", faults.events.size(), links, links == 1 ? "" : "s");
  return kExitGood;
}

}  // namespace paceline::tools
