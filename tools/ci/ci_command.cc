// `paceline ci`: runs a command over a testbed of its own, which one line starts and ends.

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataplane/attach/text.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/config/toml/quantity.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "tools/ci/ci_folder.h"
#include "tools/ci/nic_captures.h"
#include "tools/ci/supervised_command.h"
#include "tools/cli/cli.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/service_link/service_request.h"
#include "tools/testbed/device_tree.h"
#include "tools/testbed/nic_list.h"
#include "tools/testbed/program_check.h"
#include "tools/testbed/service_process.h"
#include "tools/testbed/status_text.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;

// The codes of timeout(1) and container engines.
constexpr int kExitTimedOut = 124;
constexpr int kExitNoTestbed = 125;
constexpr std::size_t kMostCaptures = 8;  // of a service

struct CiOptions {
  std::string testbed = "configs/testbeds/pair.toml";
  std::optional<std::uint64_t> hosts;
  std::vector<std::string> sets;
  std::string nic;
  std::string timeout;
  std::string keep;
  std::vector<std::string> captures;
  bool drop_in = false;
  bool no_files = false;
  bool quiet = false;
  std::vector<std::string> command;
};

struct CheckedOptions {
  std::optional<std::chrono::nanoseconds> timeout;
  std::vector<std::string> sets;
  std::string testbed;  // where it is
  std::string service;  // its program
};

int refuse_ci(const std::string& error, int code) {
  report_errors({error});
  return code;
}

// Returns kExitGood, or an exit code after printing what is wrong.
int check_ci(const CiOptions& options, CheckedOptions& out) {
  if (options.command.empty()) {
    return report_errors({"no command to run: paceline ci [OPTIONS] -- COMMAND ARGUMENTS"});
  }
  if (!options.timeout.empty()) {
    const auto time = config::parse_time(options.timeout);
    if (!time.ok()) return report_errors({"--timeout " + options.timeout + ": " + time.error});
    if (time.value.count < 1000) {
      return report_errors({"--timeout " + options.timeout + ": allowed is 1ns or more"});
    }
    out.timeout = std::chrono::nanoseconds(time.value.count / 1000);
  }
  const char* const path = std::getenv("PATH");
  const std::string path_text = path == nullptr ? "" : path;
  const FoundProgram program = find_program(options.command.front(), path_text);
  if (!program.error.empty()) return refuse_ci(program.error, program.exit_code);
  const std::string why = why_not_preloadable(program.file, path_text);
  if (!why.empty()) return report_errors({why});
  if (options.hosts) out.sets.push_back(fmt::format("fabric.hosts={}", *options.hosts));
  out.sets.insert(out.sets.end(), options.sets.begin(), options.sets.end());
  config::ReaderOptions reader = reader_options();
  reader.overrides = out.sets;
  out.testbed = shipped_file(options.testbed);
  const auto testbed = config::read_testbed_file(out.testbed, reader);
  if (!testbed.ok()) return report_errors(testbed.errors);
  if (const auto wrong = config::service_problems(testbed.value); !wrong.empty()) {
    return report_errors(wrong);
  }
  const FoundService service = find_dataplane();
  if (!service.error.empty()) return report_errors({service.error});
  out.service = service.path;
  return kExitGood;
}

std::vector<std::string> nic_names(const NicListing& listing) {
  std::vector<std::string> names;
  for (const attach::NicInfo& nic : listing.nics) names.push_back(attach::text_of(nic.name));
  return names;
}

// Chooses the NICs to capture; an error for unknown ones.
std::string choose_captures(const CiOptions& options, const std::vector<std::string>& nics,
                            std::vector<std::string>& out) {
  std::vector<std::string> named = options.captures;
  if (!options.nic.empty()) named.push_back(options.nic);
  for (const std::string& name : named) {
    if (name == "all" || std::find(nics.begin(), nics.end(), name) != nics.end()) continue;
    return fmt::format("NIC {}: the testbed has {}", name, fmt::join(nics, ", "));
  }
  out = options.captures;
  if (std::find(out.begin(), out.end(), "all") != out.end()) out = nics;
  if (out.size() <= kMostCaptures) return {};
  return fmt::format("--capture: {} NICs; allowed are {} at most", out.size(), kMostCaptures);
}

std::vector<std::string> words_for_exec(const CiOptions& options, const std::string& socket) {
  std::error_code error;
  std::vector<std::string> words = {fs::read_symlink("/proc/self/exe", error).string(), "exec",
                                    "--socket", socket};
  if (!options.nic.empty()) words.insert(words.end(), {"--nic", options.nic});
  if (options.drop_in) words.emplace_back("--drop-in");
  if (options.no_files) words.emplace_back("--no-files");
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

void write_status(const std::string& socket, const std::string& file) {
  const ServiceStatus status = service_status(socket);
  std::ofstream out(file);
  out << (status.error.empty() ? status_text(status.json).text
                               : "the service does not answer: " + status.error + "\n");
}

// Tells in words how the command ended; returns the exit code.
int tell_end(const CommandEnd& end, const CiOptions& options) {
  const std::string name = printable(options.command.front());
  if (end.left != 0 && !options.quiet) {
    fmt::print(stderr, "paceline ci: {} left {} process{} behind, now ended\n", name, end.left,
               end.left == 1 ? "" : "es");
  }
  if (end.stopped) return refuse_ci("interrupted", kExitInterrupted);
  if (end.needed_ended)
    return refuse_ci("the service ended before the command did", kExitNoTestbed);
  if (end.timed_out) {
    return refuse_ci(fmt::format("{} ran longer than --timeout {}", name, options.timeout),
                     kExitTimedOut);
  }
  if (end.exit_code != 0) {
    fmt::print(stderr, "paceline ci: {}: exit status {}\n", name, end.exit_code);
  }
  return end.exit_code;
}

// The testbed is up.
int run_over(const CiOptions& options, const CheckedOptions& checked, CiFolder& folder,
             const std::string& socket, SupervisedCommand& command) {
  const std::vector<std::string> nics = nic_names(list_nics(socket));
  std::vector<std::string> captured;
  if (const std::string wrong = choose_captures(options, nics, captured); !wrong.empty()) {
    return report_errors({wrong});
  }
  NicCaptures captures;
  if (const std::string wrong = captures.begin(socket, folder.path(), captured); !wrong.empty()) {
    return refuse_ci(wrong, kExitNoTestbed);
  }
  for (const pid_t process : captures.processes()) command.spare(process);
  if (!options.quiet) {
    fmt::print(stderr, "paceline ci: NICs {}; PACELINE_SOCKET={}\n", fmt::join(nics, ", "), socket);
  }
  const CommandEnd end = command.run(words_for_exec(options, socket), checked.timeout);
  const int code = tell_end(end, options);
  if (code != kExitGood) write_status(socket, folder.path() + "/status.txt");
  const std::string said = captures.end();
  if (code == kExitGood) return code;
  if (!options.quiet) fmt::print(stderr, "{}", said);
  fmt::print(stderr, "paceline ci: kept in {}\n", folder.keep());
  return code;
}

int run(const CiOptions& options) {
  CheckedOptions checked;
  if (const int code = check_ci(options, checked); code != kExitGood) return code;
  const std::string runtime = runtime_folder();
  if (const std::string wrong = make_runtime_folder(runtime); !wrong.empty()) {
    return refuse_ci(wrong, kExitNoTestbed);
  }
  remove_left_trees(runtime);
  CiFolder folder(options.keep);
  if (!folder.error().empty()) return report_errors({folder.error()});
  SupervisedCommand command;
  ServiceStart start;
  start.program = checked.service;
  start.testbed = fs::absolute(checked.testbed).string();
  start.socket = service_socket(fmt::format("ci-{}", ::getpid()));
  start.log = folder.path() + "/service.log";
  start.sets = checked.sets;
  start.ends_with_parent = true;
  int code = kExitNoTestbed;
  if (const std::string wrong = start_service(start); !wrong.empty()) {
    report_errors({wrong});
    fmt::print(stderr, "paceline ci: kept in {}\n", folder.keep());
  } else {
    const pid_t service = service_peer(start.socket).pid;
    command.end_with(service);
    code = run_over(options, checked, folder, start.socket, command);
    if (const std::string left = end_service(service); !left.empty()) report_errors({left});
  }
  remove_device_trees(runtime, start.socket);
  return code;
}

}  // namespace

void add_ci_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<CiOptions>();
  const config::Command command =
      app.subcommand("ci", "run a command over a testbed of its own, for continuous integration");
  command.option("--testbed", options->testbed, "testbed file").type("FILE.toml").shows_default();
  command.option("--hosts", options->hosts, "emulated hosts: h0, h1, ... (default: the file's)")
      .type("N")
      .within(1, 256);
  command.option("--set", options->sets, "override a key: --set cc.algorithm=cadence (repeatable)")
      .type("KEY=VALUE")
      .one_by_one();
  command.option("--nic", options->nic, "the only NIC that the command sees (default: all)")
      .type("NAME");
  command.option("--timeout", options->timeout, "end the command after this time: 600s")
      .type("TIME");
  command
      .option("--keep", options->keep,
              "after a failure keep log, status and captures in a new folder in this one "
              "($TMPDIR, else /tmp)")
      .type("DIR");
  command
      .option("--capture", options->captures,
              "capture this NIC, or `all`: 128 bytes of each frame, 64 MB (repeatable)")
      .type("NIC")
      .one_by_one();
  command.flag("--drop-in", options->drop_in,
               "for programs that dlopen() libibverbs.so.1, as NCCL does");
  command.flag("--no-files", options->no_files,
               "do not show /dev/infiniband and /sys/class/infiniband");
  command.flag("-q,--quiet", options->quiet, "print nothing but errors");
  command.option("COMMAND", options->command, "the command and its arguments, after --");
  command.positionals_at_end();
  command.footer(
      "Starts emulated hosts, runs the command and the programs that it starts with the verbs\n"
      "library in place, and ends all of them. Needs no root. Several may run at a time. In the\n"
      "command, PACELINE_NIC=h1 or `paceline exec --nic h1` chooses a NIC, and\n"
      "`paceline testbed fault --socket $PACELINE_SOCKET h1 loss=0.01` disturbs it.\n"
      "Examples:\n"
      "  paceline ci -- ctest --test-dir build\n"
      "  paceline ci -- sh -c 'ibv_rc_pingpong -d h1 & sleep 1; ibv_rc_pingpong -d h0 127.0.0.1'\n"
      "  paceline ci --hosts 8 --set cc.algorithm=cadence --timeout 600s --capture all \\\n"
      "    --keep failures -- make check\n"
      "Exit status: the command's; 2 bad input, 124 timed out, 125 the testbed did not start or\n"
      "ended, 126 and 127 the command cannot be run, 130 interrupted (Ctrl-C, SIGTERM).");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
