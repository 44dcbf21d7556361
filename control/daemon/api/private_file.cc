#include "control/daemon/api/private_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace paceline::daemon {

namespace {

constexpr std::size_t kMostPrivateBytes = 1 << 20;

struct OpenFile {
  explicit OpenFile(const std::string& path)
      : fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (fd >= 0) ::close(fd);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  int fd;
};

}  // namespace

std::string read_private_file(const std::string& path, std::string& out) {
  out.clear();
  const OpenFile file(path);
  struct stat status {};
  if (file.fd < 0 || ::fstat(file.fd, &status) != 0) return path + ": " + std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return path + ": not a regular file";
  if ((status.st_mode & 077) != 0) {
    return path + ": others than its owner may read or write it; allowed: mode 0600 or stricter";
  }
  if (status.st_uid != ::geteuid() && status.st_uid != 0) {
    return path + ": belongs to user " + std::to_string(status.st_uid) +
           "; allowed: the user who reads it, or root";
  }
  std::array<char, 4096> piece{};
  for (;;) {
    const ssize_t count = ::read(file.fd, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return path + ": " + std::strerror(errno);
    if (count == 0) return {};
    out.append(piece.data(), static_cast<std::size_t>(count));
    if (out.size() > kMostPrivateBytes) return path + ": longer than 1 MiB";
  }
}

}  // namespace paceline::daemon
