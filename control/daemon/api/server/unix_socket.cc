#include "control/daemon/api/server/unix_socket.h"

#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

namespace paceline::daemon {

namespace {

constexpr int kBacklog = 256;

std::string failure(const std::string& path) { return path + ": " + std::strerror(errno); }

// Removes a socket at `path` that no process serves. Returns an error, or an empty text.
std::string remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno == ENOENT ? std::string{} : failure(path);
  if (!S_ISSOCK(status.st_mode)) return path + ": exists and is not a socket";
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (probe < 0) return failure(path);
  const int result = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  const int error = errno;
  ::close(probe);
  // EAGAIN: a listener exists, but its backlog is full. Only a refusal means that there is none.
  if (result == 0 || error == EAGAIN) {
    return path + ": a daemon answers there already; end it first, or choose another socket";
  }
  if (error != ECONNREFUSED) return path + ": " + std::strerror(error);
  return ::unlink(path.c_str()) == 0 || errno == ENOENT ? std::string{} : failure(path);
}

std::string user_name(uid_t user) {
  std::array<char, 4096> room{};
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(user, &entry, room.data(), room.size(), &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return "user " + std::to_string(user);
}

}  // namespace

std::string UnixListener::open(const std::string& path, mode_t mode, std::optional<gid_t> group) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(address.sun_path)) {
    return path + ": the path of a Unix socket has 1 to " +
           std::to_string(sizeof(address.sun_path) - 1) + " bytes";
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  if (std::string wrong = remove_stale(path, address); !wrong.empty()) return wrong;
  fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd_ < 0) return failure(path);
  struct stat status {};
  if (::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) {
    std::string wrong = failure(path);
    close();
    return wrong;
  }
  // No client gets in before listen(), so the order of these calls leaves no gap.
  const bool good = (!group || ::chown(path.c_str(), static_cast<uid_t>(-1), *group) == 0) &&
                    ::chmod(path.c_str(), mode) == 0 && ::listen(fd_, kBacklog) == 0 &&
                    ::lstat(path.c_str(), &status) == 0;
  if (good) {
    path_ = path;
    device_ = status.st_dev;
    inode_ = status.st_ino;
    changed_ = status.st_ctim;
    return {};
  }
  std::string wrong = failure(path);
  ::unlink(path.c_str());
  close();
  return wrong;
}

std::string UnixListener::adopt(int descriptor) {
  const std::string name = "descriptor " + std::to_string(descriptor);
  const auto option = [&](int which, int& value) {
    socklen_t length = sizeof(value);
    return ::getsockopt(descriptor, SOL_SOCKET, which, &value, &length) == 0;
  };
  int domain = 0;
  int type = 0;
  int listens = 0;
  if (!option(SO_DOMAIN, domain) || !option(SO_TYPE, type) || !option(SO_ACCEPTCONN, listens)) {
    return failure(name);
  }
  if (domain != AF_UNIX || type != SOCK_STREAM || listens == 0) {
    return name + ": not a listening Unix stream socket; allowed: ListenStream=/run/... of systemd";
  }
  fd_ = descriptor;
  return {};
}

int UnixListener::release() { return std::exchange(fd_, -1); }

void UnixListener::close() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  if (path_.empty()) return;
  struct stat status {};
  // A number may have been given to a newer socket at once; the time of its making differs.
  const bool ours = ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ &&
                    status.st_ino == inode_ && status.st_ctim.tv_sec == changed_.tv_sec &&
                    status.st_ctim.tv_nsec == changed_.tv_nsec;
  if (ours) ::unlink(path_.c_str());
  path_.clear();
}

std::optional<gid_t> group_number(const std::string& name) {
  std::vector<char> room(1 << 16);
  group entry{};
  group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, room.data(), room.size(), &found) == 0 &&
      found != nullptr) {
    return found->gr_gid;
  }
  gid_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (name.empty() || error != std::errc{} || end != name.data() + name.size()) {
    return std::nullopt;
  }
  return number;
}

bool may_write(uid_t user, const gid_t* groups, std::size_t count, const LocalAccess& access) {
  if (user == 0 || user == ::geteuid()) return true;
  return access.group && std::find(groups, groups + count, *access.group) != groups + count;
}

std::optional<Caller> local_caller(int descriptor, const LocalAccess& access) {
  ucred credentials{};
  socklen_t length = sizeof(credentials);
  if (::getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &credentials, &length) != 0) {
    return std::nullopt;
  }
  std::vector<gid_t> groups(64);
  length = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int result = ::getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length);
  if (result != 0 && errno == ERANGE) {  // `length` says how much there is
    groups.resize(length / sizeof(gid_t));
    result = ::getsockopt(descriptor, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &length);
  }
  groups.resize(result == 0 ? length / sizeof(gid_t) : 0);
  groups.push_back(credentials.gid);
  const bool write = may_write(credentials.uid, groups.data(), groups.size(), access);
  if (!write && !access.world_readable) return std::nullopt;
  return Caller{user_name(credentials.uid), write};
}

}  // namespace paceline::daemon
