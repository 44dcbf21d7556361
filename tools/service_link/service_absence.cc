#include "tools/service_link/service_absence.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "tools/service_link/runtime_folder.h"

namespace paceline::tools {

namespace {

// Owner of the socket, or of the folder that hides it.
std::optional<uid_t> owner_of(const std::string& socket) {
  struct stat info {};
  for (std::filesystem::path path = socket; !path.empty(); path = path.parent_path()) {
    if (::lstat(path.c_str(), &info) == 0) return info.st_uid;
    if (errno != EACCES || path == path.parent_path()) break;
  }
  return std::nullopt;
}

std::string name_of(uid_t user) {
  const passwd* const entry = ::getpwuid(user);
  return entry == nullptr ? fmt::format("user {}", user)
                          : fmt::format("user {} ({})", entry->pw_name, user);
}

}  // namespace

std::string options_to_start(const std::string& name, const std::string& socket) {
  if (socket == service_socket(kDefaultTestbed)) return "";
  if (socket == service_socket(name)) return " --name " + name;
  return " --socket " + socket;
}

std::string service_absence(const std::string& socket, int error, const std::string& why,
                            const std::string& options) {
  if (error == ETIMEDOUT) {
    return fmt::format("the service at {} does not answer; is it stopped, or stuck?", socket);
  }
  const std::string start = "paceline testbed up configs/testbeds/pair.toml";
  const std::optional<uid_t> owner = error == EACCES ? owner_of(socket) : std::nullopt;
  if (owner && *owner != ::geteuid()) {
    return fmt::format(
        "the service at {} is not yours ({}). It belongs to {}: that user, root and users named in "
        "its testbed file may attach (service.users = [{}], or service.open = true). Start your "
        "own:  {}",
        socket, why, name_of(*owner), ::geteuid(), start);
  }
  return fmt::format("no service answers at {} ({}). Start one:  {}{}", socket, why, start,
                     options);
}

}  // namespace paceline::tools
