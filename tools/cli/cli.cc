#include "tools/cli/cli.h"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include "control/experiment/progress.h"
#include "control/experiment/results/reproduce.h"
#include "dataplane/base/text/printable.h"

namespace paceline::tools {

namespace {

std::atomic<bool> interrupted{false};

extern "C" void on_signal(int number) {
  interrupted.store(true, std::memory_order_relaxed);
  std::signal(number, SIG_DFL);
}

}  // namespace

std::string shipped_file(const std::string& path) {
  namespace fs = std::filesystem;
  constexpr std::string_view kFolder = "configs/";
  std::error_code error;
  if (!path.starts_with(kFolder) || fs::exists(path, error)) return path;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path installed =
      program.parent_path() / "../share/paceline" / path.substr(kFolder.size());
  return fs::exists(installed, error) ? fs::canonical(installed, error).string() : path;
}

void take_shipped_files(const config::Option& option) { option.transform(shipped_file); }

void InputOptions::add_to(const config::Command& command, const std::string& file_help,
                          bool file_required) {
  const config::Option option = command.option("FILE", file, file_help);
  if (file_required) option.required();
  take_shipped_files(option);
  command.option("--set", sets, "override a key: --set fabric.ecn.kmin=200kB (repeatable)")
      .type("KEY=VALUE")
      .one_by_one();
  command.option("--seed", seed, "seed of everything random (default: the file's, or 1)").type("N");
  command.option("--topology", topology, "topology in the HPCC simulator's text format")
      .type("FILE");
  command.option("--flows", flows, "flow list in the HPCC simulator's text format").type("FILE");
}

std::vector<std::string> InputOptions::overrides() const {
  std::vector<std::string> all;
  const auto absolute = [](const std::string& path) {
    return std::filesystem::absolute(path).string();
  };
  if (!topology.empty()) {
    all.emplace_back("fabric.topology=file");
    all.push_back("fabric.topology_file=" + absolute(topology));
  }
  if (!flows.empty()) {
    all.emplace_back("workload.kind=flows");
    all.push_back("workload.flows_file=" + absolute(flows));
  }
  all.insert(all.end(), sets.begin(), sets.end());
  if (seed) all.push_back("seed=" + std::to_string(*seed));
  return all;
}

std::string InputOptions::command_words() const {
  using experiment::shell_word;
  std::string text = " " + shell_word(file);
  for (const std::string& set : sets) text += " --set " + shell_word(set);
  if (seed) text += " --seed " + std::to_string(*seed);
  if (!topology.empty()) text += " --topology " + shell_word(topology);
  if (!flows.empty()) text += " --flows " + shell_word(flows);
  return text;
}

int report_errors(const std::vector<std::string>& errors) {
  for (const std::string& error : errors) {
    fmt::print(stderr, "paceline: error: {}\n", printable_lines(error));
  }
  return kExitBadInput;
}

std::vector<std::string> check_output(const std::string& path) {
  if (path.empty()) return {};
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path folder = fs::path(path).has_parent_path() ? fs::path(path).parent_path() : ".";
  std::string reason;
  if (fs::is_directory(path, ignored)) {
    reason = "it is a folder";
  } else if (!fs::is_directory(folder, ignored)) {
    reason = fmt::format("there is no folder {}", folder.string());
  } else if (access(folder.c_str(), W_OK) != 0) {
    reason = fmt::format("folder {}: {}", folder.string(), std::strerror(errno));
  }
  if (reason.empty()) return {};
  return {fmt::format("{}: cannot be written: {}", path, reason)};
}

Interrupt::Interrupt() {
  interrupted.store(false);
  std::signal(SIGINT, on_signal);
  std::signal(SIGTERM, on_signal);
}
Interrupt::~Interrupt() {
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
}
const std::atomic<bool>& Interrupt::flag() { return interrupted; }
void Interrupt::set() { interrupted.store(true); }

ProgressLine::ProgressLine(bool quiet) : quiet_(quiet), terminal_(isatty(STDERR_FILENO) == 1) {}

void ProgressLine::show(double share_done, double seconds_left, const std::string& what) {
  if (quiet_) return;
  const int percent = static_cast<int>(share_done * 100);
  std::string line = fmt::format("{:3d} %", percent);
  if (!std::isnan(seconds_left)) {
    line += fmt::format("  {} left", experiment::format_duration(seconds_left));
  }
  if (!what.empty()) line += "  " + what;
  if (terminal_) {
    const std::size_t length = line.size();
    if (length < width_) line.append(width_ - length, ' ');
    width_ = length;
    fmt::print(stderr, "\r{}", line);
    std::fflush(stderr);
  } else if (percent / 10 > last_tenth_) {
    last_tenth_ = percent / 10;
    fmt::print(stderr, "{}\n", line);
  }
}

void ProgressLine::clear() {
  if (quiet_ || !terminal_ || width_ == 0) return;
  fmt::print(stderr, "\r{}\r", std::string(width_, ' '));
  std::fflush(stderr);
  width_ = 0;
}

double wall_seconds() {
  using std::chrono::duration;
  return duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double thread_cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace paceline::tools
