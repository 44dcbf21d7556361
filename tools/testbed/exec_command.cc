// `paceline exec`: a program with the verbs library of Paceline in it. It checks what would
// otherwise fail without a word, sets the environment and becomes the program.

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataplane/attach/injection/fault_plan.h"
#include "dataplane/attach/text.h"
#include "tools/cli/cli.h"
#include "tools/service_link/runtime_folder.h"
#include "tools/service_link/service_absence.h"
#include "tools/testbed/device_tree.h"
#include "tools/testbed/nic_list.h"
#include "tools/testbed/program_check.h"
#include "tools/testbed/service_process.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPreload = "libpaceline-verbs.so";
constexpr const char* kFiles = "libpaceline-files.so";
constexpr const char* kDropIn = "drop-in/libibverbs.so.1";

struct ExecOptions {
  std::string nic;
  std::string socket;
  std::string name = kDefaultTestbed;
  bool drop_in = false;
  bool no_files = false;
  bool copy = false;
  bool print_env = false;
  bool reorder = false;
  std::uint64_t seed = 1;
  std::vector<std::string> faults;
  std::vector<std::string> command;
};

using Environment = std::vector<std::pair<std::string, std::string>>;

// What the verbs library is to break, or to check.
void add_injection(const ExecOptions& options, Environment& out) {
  if (!options.faults.empty()) {
    out.emplace_back(attach::kFaultVariable, fmt::format("{}", fmt::join(options.faults, ";")));
    out.emplace_back(attach::kSeedVariable, std::to_string(options.seed));
  }
  // Shared memory is written at once, so nothing can be held back there.
  if (options.reorder) out.emplace_back(attach::kReorderVariable, std::to_string(options.seed));
  if (options.copy || options.reorder) out.emplace_back("PACELINE_MEMORY", "copy");
}

std::vector<std::string> check_faults(const ExecOptions& options) {
  std::vector<std::string> errors;
  for (const std::string& fault : options.faults) {
    std::vector<attach::FaultRule> rules;
    const std::string error = attach::parse_fault_rules(fault, rules);
    if (!error.empty()) errors.push_back("--fault " + error);
  }
  return errors;
}

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

// The folder with our libraries: in a build tree ../lib, installed ../PACELINE_LIBRARIES.
struct Libraries {
  std::string folder;
  std::string error;
};
Libraries find_libraries(const std::string& wanted) {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::vector<fs::path> places = {here, here / "../" PACELINE_LIBRARIES, here / "../lib"};
  for (const fs::path& place : places) {
    if (!fs::exists(place / wanted, error)) continue;
    const std::string folder = fs::canonical(place, error).string();
    // The dynamic linker splits its lists there, and has no way to quote.
    if (folder.find_first_of(" :;") != std::string::npos) {
      return {{},
              fmt::format("{}: the dynamic linker takes no path with a space, ':' or ';'", folder)};
    }
    return {folder, {}};
  }
  return {{}, missing_part(wanted, places)};
}

// `first`, followed by the list in the environment without it.
std::string in_front(const std::string& first, const std::string& list, char between) {
  std::string out = first;
  std::string::size_type from = 0;
  while (from < list.size()) {
    const auto end = std::min(list.find(between, from), list.size());
    const std::string one = list.substr(from, end - from);
    from = end + 1;
    if (!one.empty() && one != first) out += between + one;
  }
  return out;
}

std::vector<std::string> check_nics(const ExecOptions& options, const std::string& socket,
                                    const NicListing& listing) {
  if (!listing.error.empty()) {
    return {service_absence(socket, listing.code, listing.error,
                            options_to_start(options.name, socket))};
  }
  std::vector<std::string> names;
  for (const attach::NicInfo& nic : listing.nics) {
    if (nic.gone == 0) names.push_back(attach::text_of(nic.name));
  }
  if (names.empty()) return {fmt::format("the service at {} has no NICs", socket)};
  if (options.nic.empty() || std::find(names.begin(), names.end(), options.nic) != names.end()) {
    return {};
  }
  return {fmt::format("--nic {}: the service at {} has {}", options.nic, socket,
                      fmt::join(names, ", "))};
}

// The environment that the program needs; `errors` if it cannot be provided.
Environment settings(const ExecOptions& options, const std::string& socket,
                     const NicListing& listing, std::vector<std::string>& errors) {
  Environment out;
  out.emplace_back("PACELINE_SOCKET", socket);
  if (!options.nic.empty()) out.emplace_back("PACELINE_NIC", options.nic);
  add_injection(options, out);
  std::string preload = variable("LD_PRELOAD");
  std::replace(preload.begin(), preload.end(), ' ', ':');  // both are allowed there
  const Libraries verbs = find_libraries(options.drop_in ? kDropIn : kPreload);
  if (!verbs.error.empty()) errors.push_back(verbs.error);
  if (!options.no_files) {
    const Libraries files = find_libraries(kFiles);
    if (!files.error.empty()) errors.push_back(files.error);
    const std::string runtime = runtime_folder();
    std::string error = make_runtime_folder(runtime);
    WrittenTree tree;
    if (error.empty() && errors.empty()) {
      remove_left_trees(runtime);
      tree = write_device_tree(runtime, socket, device_tree(listing));
      error = tree.error;
    }
    if (!error.empty()) {
      errors.push_back(error + " (--no-files does without the device files)");
    }
    preload = in_front(files.folder + "/" + kFiles, preload, ':');
    out.emplace_back("PACELINE_FILES", tree.folder);
  }
  if (options.drop_in) {
    out.emplace_back("LD_LIBRARY_PATH",
                     in_front(verbs.folder + "/drop-in", variable("LD_LIBRARY_PATH"), ':'));
  } else {
    preload = in_front(verbs.folder + "/" + kPreload, preload, ':');
  }
  if (!preload.empty()) out.emplace_back("LD_PRELOAD", preload);
  return out;
}

// Returns only if the program cannot be started.
int become(const std::string& file, const std::vector<std::string>& command) {
  std::vector<char*> arguments;
  for (const std::string& word : command) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  ::execv(file.c_str(), arguments.data());
  const int error = errno;
  if (error == ENOEXEC) {  // a script without "#!"
    arguments[0] = const_cast<char*>(file.c_str());
    arguments.insert(arguments.begin(), const_cast<char*>("sh"));
    ::execv("/bin/sh", arguments.data());
  }
  report_errors({fmt::format("{}: {}", file, std::strerror(error))});
  return error == ENOENT ? 127 : 126;
}

int run(const ExecOptions& options) {
  const std::string socket = socket_to_reach(options.name, options.socket);
  if (options.command.empty() && !options.print_env) {
    return report_errors({"no program to run: paceline exec [OPTIONS] -- PROGRAM ARGUMENTS"});
  }
  if (const auto errors = check_faults(options); !errors.empty()) return report_errors(errors);
  FoundProgram program;
  if (!options.command.empty()) {
    const std::string path = variable("PATH");
    program = find_program(options.command.front(), path);
    if (!program.error.empty()) {
      report_errors({program.error});
      return program.exit_code;
    }
    std::string why = why_not_preloadable(program.file, path);
    if (why.empty()) why = why_blind(program.file);
    if (!why.empty()) return report_errors({why});
  }
  const NicListing listing = list_nics(socket);
  std::vector<std::string> errors = check_nics(options, socket, listing);
  if (!errors.empty()) return report_errors(errors);
  const Environment environment = settings(options, socket, listing, errors);
  if (!errors.empty()) return report_errors(errors);
  if (options.print_env) {
    for (const auto& [name, value] : environment) fmt::print("{}={}\n", name, value);
    return kExitGood;
  }
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  return become(program.file, options.command);
}

}  // namespace

void add_exec_command(const config::Command& app, int& exit_code) {
  auto options = std::make_shared<ExecOptions>();
  const config::Command command =
      app.subcommand("exec", "run an RDMA program over the NICs of a running service");
  command.option("--nic", options->nic, "the only NIC that the program sees (default: all)")
      .type("NAME");
  command
      .option("--socket", options->socket,
              "socket of the service (PACELINE_SOCKET, else that of the testbed --name)")
      .type("PATH");
  command.option("--name", options->name, "testbed, as in `paceline testbed up --name`")
      .type("TESTBED")
      .shows_default();
  command.flag("--drop-in", options->drop_in,
               "replace the real libibverbs.so.1 by ours instead of preloading ours: for "
               "programs that dlopen() it, as NCCL does");
  command.flag(
      "--no-files", options->no_files,
      "do not show /dev/infiniband and /sys/class/infiniband (UCX and Open MPI need them)");
  command.flag("--copy", options->copy,
               "share no memory of the program: the service copies to and from it");
  command
      .option("--fault", options->faults,
              "break requests on purpose: KIND,WHEN[,for=TIME][,qp=N]; see below")
      .type("FAULT")
      .one_by_one();
  command.flag("--reorder", options->reorder,
               "write arriving data late and in any order, and say at the end whether the "
               "program reads memory before completions (exit status 3 instead of 0)");
  command.option("--seed", options->seed, "seed of --fault and --reorder").shows_default();
  command.flag("--print-env", options->print_env,
               "print the environment, one NAME=VALUE per line, and run nothing");
  command.option("PROGRAM", options->command, "the program and its arguments, after --");
  command.positionals_at_end();
  command.footer(
      "The program is not changed: libibverbs is replaced while it is loaded, by LD_PRELOAD\n"
      "(LD_LIBRARY_PATH with --drop-in). docs/user-guide.md explains it.\n"
      "Faults apply to requests of send queues. WHEN is at=N (in each queue pair, the Nth request\n"
      "that the fault can apply to), every=N or rate=P (drawn from --seed); qp=N: only in the Nth\n"
      "queue pair that the program creates.\n"
      "  local-protection    a wrong local key (IBV_WC_LOC_PROT_ERR)\n"
      "  remote-access       a wrong remote key: WRITE, READ, atomics (IBV_WC_REM_ACCESS_ERR)\n"
      "  remote-operational  (IBV_WC_REM_OP_ERR)\n"
      "  retry-exceeded      no answer (IBV_WC_RETRY_EXC_ERR)\n"
      "  rnr                 no receive is posted: SEND, WRITE with immediate\n"
      "                      (IBV_WC_RNR_RETRY_EXC_ERR)\n"
      "  slow,for=TIME       the request and all behind it leave that much later\n"
      "  port-down,for=TIME  the NIC loses its link: IBV_EVENT_PORT_ERR, later "
      "IBV_EVENT_PORT_ACTIVE\n"
      "                      (needs emulated hosts, and the rights of `paceline testbed fault`)\n"
      "  gid-change          IBV_EVENT_GID_CHANGE\n"
      "The program's standard error says which requests were hit.\n"
      "Examples:\n"
      "  paceline exec --nic h0 --fault retry-exceeded,at=100 -- ./a.out\n"
      "  paceline exec --nic h0 --fault slow,rate=0.01,for=5ms --seed 7 -- ./a.out\n"
      "  paceline exec --nic h0 --reorder -- ./a.out\n"
      "  paceline testbed up configs/testbeds/pair.toml\n"
      "  paceline exec --nic h1 -- ib_write_bw &\n"
      "  paceline exec --nic h0 -- ib_write_bw 127.0.0.1\n"
      "  mpirun -n 1 paceline exec --nic h0 -- ./a.out : -n 1 paceline exec --nic h1 -- ./a.out\n"
      "Exit status: the program's; 2 it cannot be run this way, 127 not found, 126 not "
      "executable.");
  command.callback([options, &exit_code] { exit_code = run(*options); });
}

}  // namespace paceline::tools
