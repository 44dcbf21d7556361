#include "tools/collective/meeting_socket.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <stdexcept>

namespace paceline::tools {

MeetingSocket::MeetingSocket() {
  std::error_code error;
  const auto temporary = std::filesystem::temp_directory_path(error);
  folder_ = (error ? std::filesystem::path("/tmp") : temporary) / "paceline-ranks-XXXXXX";
  if (::mkdtemp(folder_.data()) == nullptr) {
    throw std::runtime_error(fmt::format("{}: {}", folder_, std::strerror(errno)));
  }
  path_ = folder_ + "/meet";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const bool fits = path_.size() < sizeof address.sun_path;
  if (fits) std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
  descriptor_ = fits ? ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0) : -1;
  if (!fits) errno = ENAMETOOLONG;
  if (descriptor_ < 0 ||
      ::bind(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(descriptor_, SOMAXCONN) != 0) {
    const std::string why = std::strerror(errno);
    remove();
    throw std::runtime_error(fmt::format("{}: {}", path_, why));
  }
}

MeetingSocket::~MeetingSocket() { remove(); }

int MeetingSocket::accept() const { return ::accept4(descriptor_, nullptr, nullptr, SOCK_CLOEXEC); }

void MeetingSocket::remove() {
  if (descriptor_ >= 0) ::close(descriptor_);
  ::unlink(path_.c_str());
  ::rmdir(folder_.c_str());
}

}  // namespace paceline::tools
