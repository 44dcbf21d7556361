// pacelined: the host daemon. It watches the service that moves traffic, and never is in its way.
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <boost/asio/io_context.hpp>
#include <boost/asio/signal_set.hpp>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "control/daemon/api/openapi.h"
#include "control/daemon/daemon.h"
#include "control/daemon/process/privileges.h"
#include "control/daemon/process/systemd.h"
#include "dataplane/attach/printable_log.h"
#include "dataplane/attach/runtime_folder.h"
#include "dataplane/base/build_version.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/command_line.h"

extern char** environ;

namespace {

using namespace paceline::daemon;

constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;

int complain(const std::string& text, int status) {
  fmt::print(stderr, "pacelined: error: {}\n", paceline::printable_lines(text));
  return status;
}

std::int64_t read_clock(clockid_t id) {
  timespec now{};
  ::clock_gettime(id, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

Clock real_clock() {
  return {[] { return read_clock(CLOCK_MONOTONIC); }, [] { return read_clock(CLOCK_REALTIME); }};
}

// Default folder for the store: systemd's, the system's, or the user's own.
std::string usual_state_folder() {
  if (const char* const folder = std::getenv("STATE_DIRECTORY")) return folder;
  if (::geteuid() == 0) return "/var/lib/paceline";
  if (const char* const folder = std::getenv("XDG_STATE_HOME");
      folder != nullptr && *folder == '/') {
    return std::string(folder) + "/paceline";
  }
  if (const char* const home = std::getenv("HOME"))
    return std::string(home) + "/.local/state/paceline";
  return {};
}

std::string usual_runtime_folder() {
  if (const char* const folder = std::getenv("RUNTIME_DIRECTORY")) return folder;
  return paceline::attach::runtime_folder(std::getenv("XDG_RUNTIME_DIR"), ::geteuid());
}

// Makes the daemon's folder if it does not exist. A folder in /tmp that another user made is
// refused; with `daemon.user`, give_folder() checks the owner.
std::string make_folder(const std::string& path, const std::string& user) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  if (::mkdir(path.c_str(), 0755) != 0 && errno != EEXIST) {
    return fmt::format("{}: {}", path, std::strerror(errno));
  }
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return fmt::format("{}: {}", path, std::strerror(errno));
  if (!S_ISDIR(facts.st_mode)) return fmt::format("{}: is not a folder", path);
  const bool given = !user.empty() && ::geteuid() == 0;
  if (!given && facts.st_uid != ::geteuid() && facts.st_uid != 0) {
    return fmt::format("{}: belongs to user {}, not to us", path, facts.st_uid);
  }
  return {};
}

std::string folder_of_program() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return error ? std::string("/usr/sbin") : program.parent_path().string();
}

std::vector<std::string> whole_environment() {
  std::vector<std::string> out;
  for (char** entry = environ; *entry != nullptr; ++entry) out.emplace_back(*entry);
  return out;
}

DaemonSetup setup_of(const std::string& file, DaemonConfig config) {
  DaemonSetup setup;
  setup.config = std::move(config);
  setup.config_file = file;
  setup.version = PACELINE_VERSION;
  setup.build = paceline::build_version();
  setup.runtime_folder = usual_runtime_folder();
  setup.state_folder =
      setup.config.daemon.state.empty() ? usual_state_folder() : setup.config.daemon.state;
  setup.program_folder = folder_of_program();
  setup.environment = whole_environment();
  setup.seed = static_cast<std::uint64_t>(read_clock(CLOCK_REALTIME));
  return setup;
}

// For docs and tests: no file, no socket, nothing started.
int print_openapi() {
  boost::asio::io_context context;
  Daemon daemon(context, setup_of({}, {}), real_clock());
  fmt::print("{}", openapi_text(daemon.endpoints(), PACELINE_VERSION));
  return kGood;
}

// The file's meaning against the directories and users of this machine, too.
int serve(const std::string& file, DaemonConfig config) {
  Systemd systemd;
  DaemonSetup setup = setup_of(file, std::move(config));
  std::string wrong;
  setup.api_descriptor = systemd.take_api_socket(wrong);
  if (!wrong.empty()) return complain(wrong, kFailed);
  if (setup.state_folder.empty()) {
    return complain("nowhere to keep what must last: daemon.state is needed", kBadInput);
  }
  setup.watchdog_us = systemd.watchdog_us();
  setup.alive = [&systemd] { systemd.alive(); };
  const std::string user = setup.config.daemon.user;
  for (const std::string& folder : {setup.runtime_folder, setup.state_folder}) {
    if (wrong = make_folder(folder, user); !wrong.empty()) return complain(wrong, kFailed);
    if (wrong = give_folder(folder, user); !wrong.empty()) return complain(wrong, kFailed);
  }
  if (!user.empty()) {
    if (wrong = become(user); !wrong.empty()) return complain(wrong, kFailed);
  }

  boost::asio::io_context context;
  Clock clock = real_clock();
  const auto monotonic = clock.monotonic_ns;
  Daemon daemon(context, std::move(setup), std::move(clock));
  if (wrong = daemon.open(); !wrong.empty()) return complain(wrong, kFailed);
  boost::asio::signal_set ends(context, SIGINT, SIGTERM);
  boost::asio::signal_set again(context, SIGHUP);
  ends.async_wait([&](const boost::system::error_code& error, int number) {
    if (error) return;
    spdlog::info("signal {}: ending; {}", number, daemon.what_becomes_of_the_service());
    systemd.stopping();
    again.cancel();
    daemon.stop();
  });
  std::function<void()> await_reload = [&] {
    again.async_wait([&](const boost::system::error_code& error, int) {
      if (error) return;
      systemd.reloading(monotonic());
      daemon.reload();
      systemd.ready("running");
      await_reload();
    });
  };
  await_reload();
  daemon.start();
  systemd.ready("running");
  context.run();
  return kGood;
}

}  // namespace

int main(int argc, char** argv) {
  paceline::attach::log_printable_text();
  const paceline::config::Command app{
      "The host daemon of Paceline: telemetry, live parameters, experiments"};
  app.version(std::string("pacelined ") + paceline::build_version());
  std::string file = "/etc/paceline/pacelined.toml";
  bool check = false;
  bool openapi = false;
  bool foreground = false;
  app.option("--config", file, "configuration file").shows_default();
  app.flag("--check", check, "read the configuration file, tell every error, and end");
  app.flag("--print-openapi", openapi, "print the description of the API, and end");
  app.flag("--foreground", foreground, "stay in the foreground: it always does");
  if (const auto ended = paceline::config::read_command_line(app, argc, argv, "pacelined"))
    return *ended;
  if (openapi) return print_openapi();
  paceline::config::Read<DaemonConfig> read = read_daemon_file(file);
  if (!read.ok()) {
    for (const std::string& error : read.errors) {
      fmt::print(stderr, "{}\n", paceline::printable_lines(error));
    }
    return kBadInput;
  }
  if (check) {
    fmt::print("{}: good\n", file);
    return kGood;
  }
  spdlog::set_level(spdlog::level::from_str(read.value.daemon.log_level));
  try {
    return serve(file, std::move(read.value));
  } catch (const std::exception& error) {
    spdlog::critical("{}", error.what());
    return kFailed;
  }
}
