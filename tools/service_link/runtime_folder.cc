#include "tools/service_link/runtime_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "dataplane/attach/runtime_folder.h"

namespace paceline::tools {

std::string runtime_folder() {
  return attach::runtime_folder(std::getenv("XDG_RUNTIME_DIR"), ::geteuid());
}

std::string make_runtime_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fmt::format("{}: {}", folder, std::strerror(errno));
  }
  // Another user may have made it first, in /tmp.
  struct stat info {};
  if (::lstat(folder.c_str(), &info) != 0) {
    return fmt::format("{}: {}", folder, std::strerror(errno));
  }
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid()) {
    return fmt::format("{} is not a folder of this user", folder);
  }
  return {};
}

std::string service_socket(const std::string& testbed) {
  if (testbed == kDefaultTestbed) return attach::socket_in(runtime_folder());
  return fmt::format("{}/{}.sock", runtime_folder(), testbed);
}

std::string socket_to_reach(const std::string& testbed, const std::string& given) {
  if (!given.empty()) return given;
  const char* const told = std::getenv("PACELINE_SOCKET");
  return testbed == kDefaultTestbed && told != nullptr && *told != '\0' ? told
                                                                        : service_socket(testbed);
}

}  // namespace paceline::tools
