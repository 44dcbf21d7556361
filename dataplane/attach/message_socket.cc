#include "dataplane/attach/message_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

namespace paceline::attach {

namespace {

struct SocketName {
  sockaddr_un address{};
  socklen_t length = 0;
};

std::optional<SocketName> socket_name(const std::string& path) {
  SocketName name;
  name.address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof(name.address.sun_path)) {
    errno = ENAMETOOLONG;
    return std::nullopt;
  }
  std::memcpy(name.address.sun_path, path.data(), path.size());
  if (path.front() == '@') name.address.sun_path[0] = '\0';
  name.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size() +
                                       (path.front() == '@' ? 0 : 1));
  return name;
}

const sockaddr* address_of(const SocketName& name) {
  return reinterpret_cast<const sockaddr*>(&name.address);
}

// Room for what comes beside a message, aligned as the kernel wants it.
struct alignas(cmsghdr) ControlRoom {
  std::array<std::byte, CMSG_SPACE(kMaxDescriptors * sizeof(int)) + CMSG_SPACE(sizeof(ucred))>
      bytes{};
};

void take_ancillary(msghdr& message, Message& out) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&message); c != nullptr; c = CMSG_NXTHDR(&message, c)) {
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS) {
      ucred credentials{};
      std::memcpy(&credentials, CMSG_DATA(c), sizeof credentials);
      out.sender = credentials.pid;
    }
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
      out.descriptors.emplace_back(fd);
    }
  }
}

}  // namespace

Transfer send_message(int socket, const Header& header, std::span<const std::byte> body,
                      std::span<const int> descriptors) {
  if (sizeof(Header) + body.size() > kMaxMessage || descriptors.size() > kMaxDescriptors) {
    errno = EMSGSIZE;
    return Transfer::failed;
  }
  std::array<iovec, 2> parts{
      iovec{const_cast<Header*>(&header), sizeof(Header)},
      iovec{const_cast<std::byte*>(body.data()), body.size()},
  };
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = body.empty() ? 1 : 2;
  ControlRoom room;
  if (!descriptors.empty()) {
    message.msg_control = room.bytes.data();
    message.msg_controllen = CMSG_SPACE(descriptors.size_bytes());
    cmsghdr* const c = CMSG_FIRSTHDR(&message);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(descriptors.size_bytes());
    std::memcpy(CMSG_DATA(c), descriptors.data(), descriptors.size_bytes());
  }
  for (;;) {
    if (::sendmsg(socket, &message, MSG_NOSIGNAL) >= 0) return Transfer::done;
    if (errno == EINTR) continue;
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Transfer::again;
    return errno == EPIPE || errno == ECONNRESET ? Transfer::closed : Transfer::failed;
  }
}

Transfer receive_message(int socket, Message& out) {
  out.body.resize(kMaxMessage - sizeof(Header));
  out.descriptors.clear();
  out.sender = 0;
  std::array<iovec, 2> parts{
      iovec{&out.header, sizeof(Header)},
      iovec{out.body.data(), out.body.size()},
  };
  ControlRoom room;
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = room.bytes.data();
  message.msg_controllen = room.bytes.size();
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) {
    out.body.clear();
    if (errno == EAGAIN || errno == EWOULDBLOCK) return Transfer::again;
    return errno == ECONNRESET ? Transfer::closed : Transfer::failed;
  }
  take_ancillary(message, out);
  const auto bytes = static_cast<std::size_t>(got);
  out.body.resize(bytes <= sizeof(Header) ? 0 : bytes - sizeof(Header));
  if (bytes == 0) return Transfer::closed;
  const bool whole = (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!whole || bytes < sizeof(Header) || out.header.magic != kMagic ||
      out.header.major != kMajor) {
    return Transfer::broken;
  }
  return Transfer::done;
}

Descriptor connect_socket(const std::string& path, timeval patience) {
  const auto name = socket_name(path);
  if (!name) return {};
  Descriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) return fd;
  // How long a Unix socket waits for room in the listener's queue.
  ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
  int result = 0;
  do {
    result = ::connect(fd.get(), address_of(*name), name->length);
  } while (result != 0 && errno == EINTR);
  if (result == 0) {
    const timeval for_ever{};
    ::setsockopt(fd.get(), SOL_SOCKET, SO_SNDTIMEO, &for_ever, sizeof(for_ever));
    return fd;
  }
  const int error = errno == EAGAIN ? ETIMEDOUT : errno;
  fd.reset();
  errno = error;
  return fd;
}

Descriptor listen_socket(const std::string& path, unsigned mode) {
  const auto name = socket_name(path);
  if (!name) return {};
  if (path.front() != '@') {
    if (connect_socket(path, kNoPatience) || errno == ETIMEDOUT) {
      errno = EADDRINUSE;
      return {};
    }
    // No service answers: a service that was killed has left the file.
    struct stat status {};
    if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
  }
  Descriptor fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd) return {};
  bool good = ::bind(fd.get(), address_of(*name), name->length) == 0;
  // A user who may write to the folder may have put a link there since.
  if (good && path.front() != '@') {
    good = ::fchmodat(AT_FDCWD, path.c_str(), mode, AT_SYMLINK_NOFOLLOW) == 0;
  }
  if (good && ::listen(fd.get(), 64) == 0) return fd;
  const int error = errno;
  fd.reset();
  errno = error;
  return fd;
}

}  // namespace paceline::attach
