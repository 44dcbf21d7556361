#include "control/daemon/process/privileges.h"

#include <fmt/format.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

namespace paceline::daemon {

namespace {

std::string failed(const char* what) { return fmt::format("{}: {}", what, std::strerror(errno)); }

// Empties all sets by the system call itself: a library is not worth it for one structure of zeros.
bool drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  return ::syscall(SYS_capset, &header, none.data()) == 0;
}

}  // namespace

std::string give_folder(const std::string& path, const std::string& user) {
  if (user.empty() || ::geteuid() != 0) return {};
  std::vector<char> room(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(user.c_str(), &entry, room.data(), room.size(), &found) != 0 ||
      found == nullptr) {
    return fmt::format("daemon.user = \"{}\": there is no such user", user);
  }
  // A folder of an earlier start belongs to that user already; a folder of another user is refused.
  struct stat facts {};
  if (::lstat(path.c_str(), &facts) != 0) return path + ": " + std::strerror(errno);
  if (facts.st_uid != 0 && facts.st_uid != entry.pw_uid) {
    return fmt::format("{}: belongs to user {}, neither to root nor to daemon.user", path,
                       facts.st_uid);
  }
  if (::lchown(path.c_str(), entry.pw_uid, entry.pw_gid) != 0) return failed("chown");
  return {};
}

std::string become(const std::string& user) {
  std::vector<char> room(16'384);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwnam_r(user.c_str(), &entry, room.data(), room.size(), &found) != 0 ||
      found == nullptr) {
    return fmt::format("daemon.user = \"{}\": there is no such user", user);
  }
  if (::geteuid() != entry.pw_uid) {
    if (::geteuid() != 0) {
      return fmt::format("daemon.user = \"{}\": only root can become another user", user);
    }
    if (::initgroups(entry.pw_name, entry.pw_gid) != 0) return failed("initgroups");
    if (::setresgid(entry.pw_gid, entry.pw_gid, entry.pw_gid) != 0) return failed("setresgid");
    if (::setresuid(entry.pw_uid, entry.pw_uid, entry.pw_uid) != 0) return failed("setresuid");
  }
  if (entry.pw_uid != 0 && !drop_capabilities()) return failed("capset");
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return failed("PR_SET_NO_NEW_PRIVS");
  // Programs identify themselves by /proc; changing the user gave that to root.
  if (::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) != 0) return failed("PR_SET_DUMPABLE");
  return {};
}

}  // namespace paceline::daemon
