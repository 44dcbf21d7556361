#include "dataplane/verbs/service_link/settings.h"

#include <unistd.h>

#include <cstdlib>

#include "dataplane/attach/runtime_folder.h"

namespace paceline::verbs {

namespace {

std::string variable(const char* name) {
  const char* const value = ::getenv(name);
  return value == nullptr ? std::string() : std::string(value);
}

// The user's own service, else the machine's.
std::string default_socket() {
  const std::string folder = attach::runtime_folder(::getenv("XDG_RUNTIME_DIR"), ::geteuid());
  const std::string own = attach::socket_in(folder);
  const bool there = attach::is_folder_of(folder, ::geteuid()) && ::access(own.c_str(), F_OK) == 0;
  return there ? own : attach::socket_in(attach::kSystemFolder);
}

}  // namespace

Settings read_settings() {
  Settings settings;
  settings.socket = variable("PACELINE_SOCKET");
  if (settings.socket.empty()) settings.socket = default_socket();
  settings.nic = variable("PACELINE_NIC");
  const std::string log = variable("PACELINE_VERBS_LOG");
  settings.log = !log.empty() && log != "0";
  return settings;
}

void say(const std::string& text) {
  const std::string line = "paceline: " + text + "\n";
  // Nobody to tell when even this fails.
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace paceline::verbs
