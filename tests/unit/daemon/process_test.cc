// Processes that are started, watched and ended.
#include "control/daemon/process/process.h"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <fstream>
#include <sstream>
#include <thread>

#include "tests/unit/daemon/scratch_folder.h"

namespace paceline::daemon {

namespace {

bool ends(Process& process) {
  for (int i = 0; i < 3000 && process.alive(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  return !process.alive();
}

std::string log_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

}  // namespace

TEST_CASE("a process has a session, its log, its environment and none of our files", "[process]") {
  const ScratchFolder folder;
  const int ours = ::open("/dev/null", O_RDONLY);  // without close-on-exec, as libraries do it
  Process process;
  Launch launch;
  launch.arguments = {
      "sh", "-c",
      "echo \"$WORD\"; ls /proc/self/fd | wc -w; ps -o sid= -p $$ | tr -d ' '; echo $$"};
  launch.environment = {"WORD=hello", "PATH=/usr/bin:/bin"};
  launch.log = folder.file("log");
  REQUIRE(process.start(launch).empty());
  const pid_t pid = process.pid();
  REQUIRE(ends(process));
  ::close(ours);
  CHECK(process.ending() == "exit status 0");
  std::istringstream lines(log_text(launch.log));
  std::string word;
  int files = 0;
  pid_t session = 0;
  pid_t itself = 0;
  lines >> word >> files >> session >> itself;
  CHECK(word == "hello");
  CHECK(files == 4);  // three, and the folder that ls reads
  CHECK(itself == pid);
  CHECK(session == pid);
}

TEST_CASE("how a process ended is told, and what cannot be started", "[process]") {
  Process process;
  Launch launch;
  launch.arguments = {"sh", "-c", "exit 7"};
  REQUIRE(process.start(launch).empty());
  REQUIRE(ends(process));
  CHECK(process.ending() == "exit status 7");
  launch.arguments = {"sleep", "100"};
  REQUIRE(process.start(launch).empty());
  CHECK(process.alive());
  Process other;
  other.watch(process.pid());
  CHECK(other.alive());
  CHECK(process.signal(SIGKILL));
  REQUIRE(ends(process));
  CHECK(process.ending().find("signal 9") == 0);
  CHECK_FALSE(other.alive());
  CHECK_FALSE(process.signal(SIGTERM));
  launch.arguments = {"/nonexistent/program"};
  CHECK(process.start(launch).find("/nonexistent/program") != std::string::npos);
  CHECK_FALSE(process.alive());
}

TEST_CASE("what systemd told this daemon is not told to its child", "[process]") {
  const std::vector<std::string> environment{"PATH=/bin", "NOTIFY_SOCKET=/run/x", "LISTEN_FDS=1",
                                             "NOTIFY_SOCKETS=kept", "WATCHDOG_USEC=1"};
  CHECK(inherited_environment(environment) ==
        std::vector<std::string>{"PATH=/bin", "NOTIFY_SOCKETS=kept"});
}

}  // namespace paceline::daemon
