#include "tools/testbed/service_process.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <deque>
#include <fstream>
#include <thread>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "dataplane/base/text/printable.h"
#include "dataplane/config/fresh_file.h"
#include "tools/testbed/nic_list.h"

namespace paceline::tools {

namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr const char* kProgram = "paceline-dataplane";
constexpr auto kLook = 20ms;
constexpr int kStartLooks = 1500;  // half a minute
constexpr int kEndLooks = 500;     // ten seconds
constexpr std::size_t kLogLines = 8;

std::vector<char*> arguments_of(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::string end_of_log(const std::string& path) {
  std::ifstream file(path);
  std::deque<std::string> last;
  for (std::string line; std::getline(file, line);) {
    last.push_back("  " + printable(line));
    if (last.size() > kLogLines) last.pop_front();
  }
  return last.empty() ? "  (its log is empty)" : fmt::format("{}", fmt::join(last, "\n"));
}

// In the child: only what may be called after a fork. `words` are ready.
[[noreturn]] void run_child(const std::vector<char*>& words, int log, bool ends_with_parent) {
  ::setsid();
  if (ends_with_parent) ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  // The parent may have blocked the signals that end a service.
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  ::dup2(nothing, STDIN_FILENO);
  ::dup2(log, STDOUT_FILENO);
  ::dup2(log, STDERR_FILENO);
  ::execv(words[0], words.data());
  ::_exit(127);
}

}  // namespace

FoundService find_dataplane() {
  std::error_code error;
  const fs::path here = fs::read_symlink("/proc/self/exe", error).parent_path();
  const std::vector<fs::path> places = {here, here / "../dataplane/service"};
  for (const fs::path& place : places) {
    const fs::path file = place / kProgram;
    if (::access(file.c_str(), X_OK) == 0) return {fs::canonical(file, error).string(), {}};
  }
  return {{}, missing_part(kProgram, places)};
}

std::string missing_part(const std::string& name, std::span<const fs::path> places) {
  std::vector<std::string> folders;
  folders.reserve(places.size());
  for (const fs::path& place : places) folders.push_back(place.lexically_normal().string());
  std::error_code error;
  const fs::path build = places.front() / "..";
  return fmt::format("{} is not in {}. {}", name, fmt::join(folders, ", "),
                     fs::exists(build / "CMakeCache.txt", error)
                         ? fmt::format("Build it:  cmake --build {} --target testbed_programs",
                                       fs::canonical(build, error).string())
                         : "Install all of paceline:  cmake --install BUILD_FOLDER");
}

std::vector<std::string> service_command(const ServiceStart& start) {
  std::vector<std::string> words = {start.program, "--testbed",  start.testbed,
                                    "--socket",    start.socket, "--foreground"};
  for (const std::string& set : start.sets) {
    words.emplace_back("--set");
    words.push_back(set);
  }
  return words;
}

std::string become_service(const ServiceStart& start) {
  std::vector<std::string> words = service_command(start);
  ::execv(start.program.c_str(), arguments_of(words).data());
  return fmt::format("{}: {}", start.program, std::strerror(errno));
}

std::string start_service(const ServiceStart& start) {
  if (const int error = config::make_fresh_file(start.log, 0600); error != 0) {
    return fmt::format("{}: {}", start.log, std::strerror(error));
  }
  const int log = ::open(start.log.c_str(), O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
  if (log < 0) return fmt::format("{}: {}", start.log, std::strerror(errno));
  std::vector<std::string> words = service_command(start);
  const std::vector<char*> arguments = arguments_of(words);
  const pid_t child = ::fork();
  if (child == 0) run_child(arguments, log, start.ends_with_parent);
  ::close(log);
  if (child < 0) return fmt::format("{}: {}", start.program, std::strerror(errno));
  for (int look = 0; look < kStartLooks; ++look) {
    if (list_nics(start.socket).error.empty()) return {};
    int how = 0;
    if (::waitpid(child, &how, WNOHANG) == child) {
      return fmt::format("the service ended at once; {} ends:\n{}", start.log,
                         end_of_log(start.log));
    }
    std::this_thread::sleep_for(kLook);
  }
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return fmt::format("the service does not answer at {}; {} ends:\n{}", start.socket, start.log,
                     end_of_log(start.log));
}

std::string end_service(pid_t pid) {
  if (::kill(pid, SIGTERM) != 0) {
    return errno == ESRCH ? std::string()
                          : fmt::format("process {}: {}", pid, std::strerror(errno));
  }
  for (int look = 0; look < kEndLooks; ++look) {
    if (::kill(pid, 0) != 0 && errno == ESRCH) return {};
    // A child of this process, if the process that started it has not ended yet.
    if (::waitpid(pid, nullptr, WNOHANG) == pid) return {};
    std::this_thread::sleep_for(kLook);
  }
  return fmt::format("process {} has not ended; kill -9 {} does it the hard way", pid, pid);
}

}  // namespace paceline::tools
