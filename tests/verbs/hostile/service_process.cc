#include "tests/verbs/hostile/service_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/attach_client.h"

namespace paceline::test {

namespace {

// A tenth of a second at a time, up to half a minute.
constexpr int kTries = 300;
constexpr useconds_t kTry = 100'000;

}  // namespace

ServiceProcess::ServiceProcess(const std::string& program, const std::string& testbed,
                               const std::string& folder)
    : socket_(folder + "/service.sock"), log_(folder + "/service.log") {
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(126);
  const int log = ::open(log_.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (log < 0) ::_exit(126);
  ::dup2(log, 1);
  ::dup2(log, 2);
  ::setenv("UBSAN_OPTIONS", "halt_on_error=1:print_stacktrace=1", 1);
  ::setenv("ASAN_OPTIONS", "detect_leaks=1", 1);
  // Quotas that a hostile tenant reaches, and none that would end the machine's memory.
  ::execl(program.c_str(), program.c_str(), "--testbed", testbed.c_str(), "--socket",
          socket_.c_str(), "--foreground", "--set", "service.open=true", "--set",
          "service.sessions=32", "--set", "service.registered=\"64MiB\"", "--set",
          "service.regions=512", nullptr);
  ::_exit(127);
}

ServiceProcess::~ServiceProcess() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

bool ServiceProcess::await() {
  for (int i = 0; i < kTries && alive(); ++i) {
    if (attach::connect_socket(socket_)) return true;
    ::usleep(kTry);
  }
  return false;
}

bool ServiceProcess::alive() {
  if (pid_ <= 0) return false;
  if (::waitpid(pid_, nullptr, WNOHANG) == 0) return true;
  pid_ = -1;
  return false;
}

Holdings ServiceProcess::holdings() const {
  Holdings out;
  const std::string at = "/proc/" + std::to_string(pid_);
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(at + "/fd")) {
    ++out.descriptors;
  }
  std::ifstream maps(at + "/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find("memfd:") != std::string::npos) ++out.shared_mappings;
  }
  return out;
}

nlohmann::json ServiceProcess::status() const {
  AttachClient client(socket_);
  if (!client.connected() || !client.ask(attach::Operation::hello, attach::HelloRequest{}).ok()) {
    return nlohmann::json::object();
  }
  const Answer answer = client.ask(attach::Operation::status);
  if (!answer.ok()) return nlohmann::json::object();
  const auto& body = answer.message.body;
  return nlohmann::json::parse(reinterpret_cast<const char*>(body.data()),
                               reinterpret_cast<const char*>(body.data() + body.size()), nullptr,
                               false);
}

bool ServiceProcess::end() {
  if (!alive()) return false;
  ::kill(pid_, SIGTERM);
  for (int i = 0; i < kTries; ++i) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) {
      pid_ = -1;
      return WIFEXITED(status) && WEXITSTATUS(status) == 0;
    }
    ::usleep(kTry);
  }
  return false;
}

std::string ServiceProcess::log() const {
  std::ifstream file(log_);
  std::ostringstream text;
  text << file.rdbuf();
  const std::string all = text.str();
  constexpr std::size_t kMost = 16'000;
  return all.size() > kMost ? all.substr(all.size() - kMost) : all;
}

}  // namespace paceline::test
