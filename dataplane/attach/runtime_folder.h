// Where a service and its programs meet by default. The caller reads the environment.
#pragma once

#include <sys/stat.h>

#include <string>

#include "dataplane/attach/protocol.h"

namespace paceline::attach {

inline constexpr const char* kSystemFolder = "/run/paceline";

// `xdg_runtime_dir`: that variable's value, or nullptr.
inline std::string runtime_folder(const char* xdg_runtime_dir, unsigned user) {
  if (xdg_runtime_dir != nullptr && xdg_runtime_dir[0] == '/') {
    return std::string(xdg_runtime_dir) + "/paceline";
  }
  return user == 0 ? kSystemFolder : "/tmp/paceline-" + std::to_string(user);
}

// False: another user made it first, as anybody may in /tmp, or it does not exist.
inline bool is_folder_of(const std::string& folder, unsigned user) {
  struct stat facts {};
  return ::lstat(folder.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == user;
}

inline std::string socket_in(const std::string& folder) { return folder + "/" + kDefaultSocket; }

}  // namespace paceline::attach
