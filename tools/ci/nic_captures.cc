#include "tools/ci/nic_captures.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>

#include "dataplane/base/text/printable.h"
#include "tools/ci/supervised_command.h"

namespace paceline::tools {

namespace {

// Headers, and the first bytes of payload: what tells a story of a queue pair in little space.
constexpr const char* kCaptureSnap = "128";
constexpr const char* kCaptureLimit = "64MB";
// The first line of a capture that has begun.
constexpr std::string_view kBegun = "capturing";

// Reads up to the end of the next line, or until the other end closes.
std::string capture_line(int from) {
  std::string line;
  for (char c = 0; ::read(from, &c, 1) == 1 && c != '\n';) line += c;
  return line;
}

}  // namespace

NicCaptures::~NicCaptures() { end(); }

std::string NicCaptures::begin(const std::string& socket, const std::string& folder,
                               std::span<const std::string> nics) {
  for (const std::string& nic : nics) {
    if (std::string wrong = begin_one(socket, folder, nic); !wrong.empty()) return wrong;
  }
  return {};
}

std::string NicCaptures::begin_one(const std::string& socket, const std::string& folder,
                                   const std::string& nic) {
  std::error_code error;
  std::vector<std::string> words = {std::filesystem::read_symlink("/proc/self/exe", error).string(),
                                    "capture",
                                    "--socket",
                                    socket,
                                    "--nic",
                                    nic,
                                    "--snap",
                                    kCaptureSnap,
                                    "--limit",
                                    kCaptureLimit,
                                    "--out",
                                    fmt::format("{}/{}.pcapng", folder, nic)};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return fmt::format("pipe: {}", std::strerror(errno));
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child == 0) {
    ::setsid();  // Ctrl-C is for the command
    ::dup2(ends[1], STDOUT_FILENO);
    ::dup2(ends[1], STDERR_FILENO);
    if (end_with_parent(parent, SIGTERM)) ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  captures_.push_back({nic, child, ends[0]});
  const std::string line = child < 0 ? std::strerror(errno) : capture_line(ends[0]);
  return line.starts_with(kBegun) ? std::string() : fmt::format("no capture of {}: {}", nic, line);
}

std::vector<pid_t> NicCaptures::processes() const {
  std::vector<pid_t> out;
  out.reserve(captures_.size());
  for (const Capture& capture : captures_) out.push_back(capture.process);
  return out;
}

std::string NicCaptures::end() {
  std::string said;
  for (const Capture& capture : captures_) {
    if (capture.process > 0) ::kill(capture.process, SIGTERM);
  }
  for (const Capture& capture : captures_) {
    for (std::string line; !(line = capture_line(capture.said)).empty();)
      said += printable(line) + "\n";
    ::close(capture.said);
    if (capture.process > 0) ::waitpid(capture.process, nullptr, 0);
  }
  captures_.clear();
  return said;
}

}  // namespace paceline::tools
