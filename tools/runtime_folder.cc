#include "tools/runtime_folder.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>

#include "dataplane/attach/protocol.h"

namespace paceline::tools {

std::string runtime_folder() {
  const char* const own = std::getenv("XDG_RUNTIME_DIR");
  if (own != nullptr && own[0] == '/') return std::string(own) + "/paceline";
  if (::geteuid() == 0) return "/run/paceline";
  return fmt::format("/tmp/paceline-{}", ::geteuid());
}

std::string make_runtime_folder(const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return fmt::format("{}: {}", folder, std::strerror(errno));
  }
  // Somebody else may have made it first, in /tmp.
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
  if (testbed == kDefaultTestbed) return runtime_folder() + "/" + attach::kDefaultSocket;
  return fmt::format("{}/{}.sock", runtime_folder(), testbed);
}

}  // namespace paceline::tools
