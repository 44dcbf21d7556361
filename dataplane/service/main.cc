// paceline-dataplane: the service that owns NIC instances and serves programs.
#include <spdlog/spdlog.h>
#include <sys/resource.h>
#include <unistd.h>

#include <boost/asio/signal_set.hpp>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "dataplane/attach/printable_log.h"
#include "dataplane/attach/runtime_folder.h"
#include "dataplane/base/build_version.h"
#include "dataplane/base/text/printable.h"
#include "dataplane/config/command_line.h"
#include "dataplane/config/testbed/testbed_reader.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/clock/unix_time.h"
#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/service/control/control_server.h"
#include "dataplane/service/limits/testbed_settings.h"
#include "dataplane/service/nics/make_nic_sets.h"
#include "dataplane/service/nics/open_ports.h"
#include "dataplane/service/protocol/control_protocol.h"
#include "dataplane/service/sessions/server.h"
#include "dataplane/service/workers/service.h"

namespace {

constexpr int kGood = 0;
constexpr int kFailed = 1;
constexpr int kBadInput = 2;

int complain(const std::string& text) {
  fmt::print(stderr, "paceline-dataplane: error: {}\n", paceline::printable_lines(text));
  return kBadInput;
}

// The default place where programs look for the service.
std::string usual_folder() {
  return paceline::attach::runtime_folder(std::getenv("XDG_RUNTIME_DIR"), ::geteuid());
}

// Each session and each queue has descriptors: raise the limit as far as possible.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

paceline::service::MadeNicSets nic_sets_of(const paceline::config::Testbed& testbed) {
  using namespace paceline;
  if (testbed.scenario) return service::make_nic_sets(testbed);
  service::MadeNicSets unfit;
  unfit.errors = config::service_problems(testbed);
  return unfit.errors.empty() ? service::open_port_nics(testbed) : std::move(unfit);
}

int serve(const std::string& file, std::string socket, std::string control,
          const std::vector<std::string>& overrides) {
  using namespace paceline;
  config::ReaderOptions options = reader_options();
  options.overrides = overrides;
  const config::Read<config::Testbed> read = config::read_testbed_file(file, options);
  if (!read.ok()) {
    for (const std::string& error : read.errors) fmt::print(stderr, "{}\n", printable_lines(error));
    return kBadInput;
  }
  service::MadeNicSets made = nic_sets_of(read.value);
  if (!made.errors.empty()) {
    for (const std::string& error : made.errors) fmt::print(stderr, "{}\n", printable_lines(error));
    return kBadInput;
  }
  for (const std::string& note : made.notes) spdlog::info("{}", note);
  service::ServiceSettings settings = service::settings_of(read.value.service);
  if (socket.empty()) socket = settings.socket;
  if (socket.empty()) {
    const std::string folder = usual_folder();
    if (!attach::is_folder_of(folder, ::geteuid())) {
      return complain(fmt::format(
          "{}: not a folder of this user; make it, or say --socket where programs attach", folder));
    }
    socket = attach::socket_in(folder);
  }
  if (control.empty()) control = service::control_socket_beside(socket);
  settings.testbed = std::filesystem::absolute(file).string();
  settings.overrides = overrides;
  settings.start_unix_ns = unix_nanos();
  raise_descriptor_limit();

  const bool ports = !read.value.ports.empty();
  service::Service service(std::move(settings), std::move(made.sets));
  service::Server server(service);
  std::optional<service::ControlServer> controls;
  int status = kBadInput;
  const std::string wrong = service.start([&]() -> std::string {
    status = kFailed;
    if (std::string error = server.listen(socket); !error.empty()) return error;
    controls.emplace(service, server.context(), socket,
                     service::SessionOperations{
                         [&server] { return server.status_of_all(); },
                         [&server](service::NicPlace place) { server.take_away(place); }});
    if (std::string error = controls->listen(control); !error.empty()) return error;
    status = kBadInput;
    return service.give_up_privileges(ports);
  });
  if (!wrong.empty()) {
    complain(wrong);
    return status;
  }
  boost::asio::signal_set signals(server.context(), SIGINT, SIGTERM);
  signals.async_wait([&](const boost::system::error_code& error, int number) {
    if (error) return;
    spdlog::info("signal {}: ending", number);
    server.stop();
  });
  spdlog::info("{}: {} NICs at {}, control at {}", file, service.nics().size(), socket, control);
  spdlog::info("runs as {}", service.privileges().text());
  server.run();
  service.stop();
  return kGood;
}

}  // namespace

int main(int argc, char** argv) {
  paceline::attach::log_printable_text();
  const paceline::config::Command app{
      "The service that owns NIC instances: programs reach them through libibverbs"};
  app.version(std::string("paceline-dataplane ") + paceline::build_version());
  std::string testbed;
  std::string socket;
  std::string control;
  bool foreground = false;
  std::vector<std::string> overrides;
  app.option("--testbed", testbed, "testbed file: the NIC instances").required();
  app.option("--socket", socket,
             "where programs attach; a name that begins with '@' is abstract. Else as the "
             "testbed file says, or paceline.sock in the folder of `paceline testbed`");
  app.option("--control", control,
             "where the daemon and tools control the service; else control.sock beside the "
             "socket of programs");
  app.option("--set", overrides, "KEY=VALUE overrides the file; may be repeated");
  app.flag("--foreground", foreground, "stay in the foreground and log to the terminal");
  if (const auto ended = paceline::config::read_command_line(app, argc, argv, "paceline-dataplane"))
    return *ended;
  if (!foreground && ::daemon(1, 1) != 0) return complain("cannot go to the background");
  try {
    return serve(testbed, socket, control, overrides);
  } catch (const std::exception& error) {
    spdlog::error("{}", error.what());
    return kFailed;
  }
}
