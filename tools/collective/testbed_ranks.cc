#include "tools/collective/testbed_ranks.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

namespace paceline::tools {

namespace {

constexpr const char* kRankProgram = "paceline-rank";

std::filesystem::path own_file() {
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

// Collects what a command of this program prints; returns the exit status, or -1.
int output_of(std::vector<std::string> command, std::string& text) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) return -1;
  std::vector<char*> words;
  for (std::string& word : command) words.push_back(word.data());
  words.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(ends[1], STDOUT_FILENO);
    ::close(ends[0]);
    ::close(ends[1]);
    ::execv(words[0], words.data());
    ::_exit(127);
  }
  ::close(ends[1]);
  std::array<char, 4096> some;
  for (ssize_t n; child > 0 && (n = ::read(ends[0], some.data(), some.size())) > 0;) {
    text.append(some.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  int status = -1;
  if (child < 0 || ::waitpid(child, &status, 0) != child || !WIFEXITED(status)) return -1;
  return WEXITSTATUS(status);
}

// The option by which commands find the service; they know PACELINE_SOCKET, too.
std::string service_option(const std::string& testbed) { return fmt::format("--name={}", testbed); }

std::string rank_program() { return (own_file().parent_path() / kRankProgram).string(); }

}  // namespace

config::Read<std::vector<std::string>> testbed_nics(const std::string& testbed) {
  std::string text;
  config::Read<std::vector<std::string>> out;
  if (output_of({own_file().string(), "testbed", "status", "--json", service_option(testbed)},
                text) != 0) {
    return out;
  }
  const auto status = nlohmann::json::parse(text, nullptr, false);
  try {
    for (const auto& set : status.at("workers")) {
      for (const auto& nic : set.at("nics")) out.value.push_back(nic.at("name"));
    }
  } catch (const nlohmann::json::exception& error) {
    out.errors.push_back(fmt::format("the status of testbed {}: {}", testbed, error.what()));
  }
  return out;
}

std::vector<std::string> rank_program_errors() {
  if (::access(rank_program().c_str(), X_OK) == 0) return {};
  return {fmt::format("{}: missing; it is built where libibverbs is installed", rank_program())};
}

std::vector<std::string> rank_command(const std::string& testbed, const std::string& nic,
                                      const std::vector<std::string>& options) {
  std::vector<std::string> words{own_file().string(), "exec", service_option(testbed), "--nic", nic,
                                 "--no-files",        "--",   rank_program()};
  words.insert(words.end(), options.begin(), options.end());
  return words;
}

}  // namespace paceline::tools
