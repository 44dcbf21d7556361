// `paceline testbed up|status|fault|remove|down`: a service with the NICs of a testbed file.

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "dataplane/attach/text.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/cli/cli.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/service_link/service_absence.h"
#include "tools/service_link/service_request.h"
#include "tools/testbed/device_tree.h"
#include "tools/testbed/fault_command.h"
#include "tools/testbed/nic_list.h"
#include "tools/testbed/remove_command.h"
#include "tools/testbed/service_process.h"
#include "tools/testbed/status_text.h"

namespace paceline::tools {

namespace {

struct TestbedOptions {
  std::string file;
  std::string name = kDefaultTestbed;
  std::string socket;
  std::vector<std::string> sets;
  bool foreground = false;
  bool json = false;
  FaultOptions fault;
  std::vector<std::string> removed;
};

bool good_testbed_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of(
             "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") ==
             std::string::npos;
}

std::string socket_of(const TestbedOptions& options) {
  return options.socket.empty() ? service_socket(options.name) : options.socket;
}

// The socket of a service that runs already, no matter which user started it.
std::string running_socket(const TestbedOptions& options) {
  return socket_to_reach(options.name, options.socket);
}

// The service's log. A service with its own socket has its log beside it, so that two services do
// not write to one file.
std::string log_of(const TestbedOptions& options) {
  if (options.socket.empty() || options.socket.starts_with('@')) {
    return fmt::format("{}/{}.log", runtime_folder(), options.name);
  }
  return options.socket + ".log";
}

int refuse_name(const TestbedOptions& options) {
  return report_errors({fmt::format(
      "--name {}: allowed are letters, digits, '-' and '_', at most 64", options.name)});
}

int nobody(const TestbedOptions& options, const std::string& socket, const ServicePeer& peer) {
  fmt::print(
      stderr, "paceline: error: {}\n",
      service_absence(socket, peer.code, peer.error, options_to_start(options.name, socket)));
  return kExitFailed;
}

int up(const TestbedOptions& options) {
  if (!good_testbed_name(options.name)) return refuse_name(options);
  config::ReaderOptions reader = reader_options();
  reader.overrides = options.sets;
  const auto testbed = config::read_testbed_file(options.file, reader);
  if (!testbed.ok()) return report_errors(testbed.errors);
  if (const auto wrong = config::service_problems(testbed.value); !wrong.empty()) {
    return report_errors(wrong);
  }
  const FoundService program = find_dataplane();
  if (!program.error.empty()) return report_errors({program.error});
  const std::string socket = socket_of(options);
  const ServicePeer peer = service_peer(socket);
  if (peer.code == ETIMEDOUT) return nobody(options, socket, peer);
  if (peer.pid != 0) {
    fmt::print(stderr,
               "paceline: error: a testbed is up at {} (process {}). End it with\n"
               "  paceline testbed down{}\nor give this one a --name of its own\n",
               socket, peer.pid, options_to_start(options.name, socket_of(options)));
    return kExitFailed;
  }
  const std::string folder = runtime_folder();
  if (const std::string wrong = make_runtime_folder(folder); !wrong.empty()) {
    fmt::print(stderr, "paceline: error: {}\n", wrong);
    return kExitFailed;
  }
  remove_left_trees(folder);
  ServiceStart start;
  start.program = program.path;
  start.testbed = std::filesystem::absolute(options.file).string();
  start.socket = socket;
  start.log = log_of(options);
  start.sets = options.sets;
  const std::string wrong = options.foreground ? become_service(start) : start_service(start);
  if (!wrong.empty()) {
    fmt::print(stderr, "paceline: error: {}\n", wrong);
    return kExitFailed;
  }
  const NicListing listing = list_nics(socket);
  fmt::print("{}", nics_text(listing.nics));
  const std::string first =
      listing.nics.empty() ? "h0" : attach::text_of(listing.nics.front().name);
  fmt::print(
      "log: {}\nNow run a program on one of them, for example\n"
      "  paceline exec{} --nic {} -- ibv_devinfo\nand end the testbed with\n"
      "  paceline testbed down{}\n",
      start.log, options_to_start(options.name, socket_of(options)), first,
      options_to_start(options.name, socket_of(options)));
  return kExitGood;
}

int status(const TestbedOptions& options) {
  if (!good_testbed_name(options.name)) return refuse_name(options);
  const std::string socket = running_socket(options);
  const ServicePeer peer = service_peer(socket);
  if (peer.pid == 0) return nobody(options, socket, peer);
  const ServiceStatus got = service_status(socket);
  if (got.code == EACCES || got.code == ETIMEDOUT)
    return nobody(options, socket, {0, got.error, got.code});
  if (!got.error.empty()) {
    fmt::print(stderr, "paceline: error: the service at {}: {}\n", socket, got.error);
    return kExitFailed;
  }
  const StatusText text = options.json ? status_json(got.json) : status_text(got.json);
  if (!text.error.empty()) {
    fmt::print(stderr, "paceline: error: the service at {}: {}\n", socket, text.error);
    return kExitFailed;
  }
  if (!options.json) fmt::print("service    process {} at {}\n", peer.pid, socket);
  fmt::print("{}", text.text);
  return kExitGood;
}

int fault(const TestbedOptions& options) {
  if (!good_testbed_name(options.name)) return refuse_name(options);
  const std::string socket = running_socket(options);
  const ServicePeer peer = service_peer(socket);
  if (peer.pid == 0) return nobody(options, socket, peer);
  return inject_faults(options.fault, socket, options_to_start(options.name, socket));
}

int remove(const TestbedOptions& options) {
  if (!good_testbed_name(options.name)) return refuse_name(options);
  const std::string socket = running_socket(options);
  const ServicePeer peer = service_peer(socket);
  if (peer.pid == 0) return nobody(options, socket, peer);
  return remove_nics(options.removed, socket, options_to_start(options.name, socket));
}

int down(const TestbedOptions& options) {
  if (!good_testbed_name(options.name)) return refuse_name(options);
  const ServicePeer peer = service_peer(socket_of(options));
  if (peer.pid == 0) return nobody(options, socket_of(options), peer);
  if (const std::string wrong = end_service(peer.pid); !wrong.empty()) {
    fmt::print(stderr, "paceline: error: {}\n", wrong);
    return kExitFailed;
  }
  // A service that ended by itself keeps its log, which may tell the reason.
  std::error_code ignored;
  std::filesystem::remove(log_of(options), ignored);
  remove_device_trees(runtime_folder(), socket_of(options));
  fmt::print("down: process {} has ended\n", peer.pid);
  return kExitGood;
}

}  // namespace

void add_testbed_command(const config::Command& app, int& exit_code) {
  const config::Command command =
      app.subcommand("testbed", "Run NICs of a testbed file for unmodified programs");
  command.require_subcommand();
  auto options = std::make_shared<TestbedOptions>();
  const auto add = [&](const char* name, const char* help, int (*run)(const TestbedOptions&)) {
    config::Command sub = command.subcommand(name, help);
    sub.option("--name", options->name, "name of the testbed, if there are several")
        .shows_default();
    sub.option("--socket", options->socket,
               "socket of the service, instead of the one that follows from the name");
    sub.callback([options, &exit_code, run] { exit_code = run(*options); });
    return sub;
  };
  const config::Command start = add("up", "Start a testbed in the background", up);
  take_shipped_files(
      start.option("FILE", options->file, "testbed file: configs/testbeds/pair.toml").required());
  start.option("--set", options->sets, "override a key: --set cc.algorithm=cadence (repeatable)")
      .type("KEY=VALUE")
      .one_by_one();
  start.flag("--foreground", options->foreground, "stay, and log to the terminal");
  const config::Command look =
      add("status", "Show NICs, programs, queues, marks and drops", status);
  look.flag("--json", options->json, "print the whole status as JSON");
  options->fault.add_to(
      add("fault", "Disturb ports, links, switches and clocks, and restore them", fault));
  add("remove", "Take NICs away from their programs, as if pulled out of the machine", remove)
      .option("NIC", options->removed, "NICs, such as h1; they come back only with a new testbed")
      .required();
  add("down", "End a testbed", down);
  command.footer(
      "Examples:\n"
      "  paceline testbed up configs/testbeds/pair.toml\n"
      "  paceline testbed up configs/testbeds/incast.toml --name b --set cc.algorithm=cadence\n"
      "  paceline testbed status --name b\n"
      "  paceline testbed fault h0.1 down --for 50ms\n"
      "  paceline testbed fault h1 loss=0.01 rate=1Gb/s\n"
      "  paceline testbed fault h3 pcie_limit --severity 4 --after 1s --for 10s\n"
      "  paceline testbed fault h3 clear\n"
      "  paceline testbed fault --random 100 --seed 7 --every 100ms\n"
      "  paceline testbed remove h1\n"
      "  paceline testbed down --name b\n"
      "Exit status: 0 good, 1 no testbed, or it does not start or end, 2 bad input.");
}

}  // namespace paceline::tools
