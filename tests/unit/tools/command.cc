#include "tests/unit/tools/command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>

namespace paceline::tools {

namespace {

constexpr int kHangSeconds = 110;  // ctest gives a case 120
constexpr useconds_t kLookEvery = 5'000;

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Folder::Folder() {
  std::string name = (std::filesystem::temp_directory_path() / "paceline-test-XXXXXX").string();
  REQUIRE(::mkdtemp(name.data()) != nullptr);
  root_ = name;
}

Folder::~Folder() {
  std::error_code ignored;
  std::filesystem::remove_all(root_, ignored);
}

std::string Folder::write(const std::string& name, const std::string& text) const {
  std::ofstream(root_ / name, std::ios::binary) << text;
  return name;
}

std::string Folder::read(const std::string& name) const { return read_file(path(name)); }

std::vector<std::string> Folder::list() const {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(root_)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

Command::Command(const Folder& folder, const std::vector<std::string>& arguments) {
  // Everything that allocates comes before the fork.
  std::vector<std::string> words = {PACELINE_BINARY};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const std::string working = folder.path("");
  const std::string out = streams_.path("out");
  const std::string err = streams_.path("err");
  pid_ = ::fork();
  REQUIRE(pid_ >= 0);
  if (pid_ != 0) return;
  const int in_fd = ::open("/dev/null", O_RDONLY);
  const int out_fd = ::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  const int err_fd = ::open(err.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::dup2(in_fd, 0);
  ::dup2(out_fd, 1);
  ::dup2(err_fd, 2);
  if (::chdir(working.c_str()) == 0) ::execv(argv[0], argv.data());
  ::_exit(127);
}

Command::~Command() {
  if (!running()) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, &status_, 0);
}

void Command::signal(int number) const { ::kill(pid_, number); }

std::string Command::err() const { return streams_.read("err"); }

bool Command::running() {
  if (!ended_) ended_ = ::waitpid(pid_, &status_, WNOHANG) == pid_;
  return !ended_;
}

Outcome Command::wait() {
  for (std::int64_t waited = 0; running(); waited += kLookEvery) {
    if (waited > kHangSeconds * std::int64_t{1'000'000}) {
      signal(SIGKILL);
      FAIL("the command hangs");
    }
    ::usleep(kLookEvery);
  }
  Outcome outcome;
  outcome.code = WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  outcome.out = streams_.read("out");
  outcome.err = streams_.read("err");
  return outcome;
}

Outcome paceline_command(const Folder& folder, const std::vector<std::string>& arguments) {
  return Command(folder, arguments).wait();
}

}  // namespace paceline::tools
