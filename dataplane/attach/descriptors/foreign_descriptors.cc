#include "dataplane/attach/descriptors/foreign_descriptors.h"

#include <fcntl.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#ifndef SO_PASSRIGHTS  // Linux 6.16; older headers do not name it
#define SO_PASSRIGHTS 83
#endif

namespace paceline::attach {

void allow_descriptors(int socket, bool allowed) {
  const int value = allowed ? 1 : 0;
  ::setsockopt(socket, SOL_SOCKET, SO_PASSRIGHTS, &value, sizeof(value));
}

Glance look(int socket, std::span<std::byte> out) {
  iovec part{out.data(), out.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  // If each message carries its sender's credentials, there is room for these alone: the kernel
  // puts them in front of descriptors.
  alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(ucred))> room{};
  int tells_senders = 0;
  socklen_t length = sizeof(tells_senders);
  ::getsockopt(socket, SOL_SOCKET, SO_PASSCRED, &tells_senders, &length);
  if (tells_senders != 0) message.msg_control = room.data();
  Glance glance;
  do {
    message.msg_controllen = tells_senders != 0 ? room.size() : 0;
    glance.bytes = ::recvmsg(socket, &message, MSG_PEEK | MSG_DONTWAIT);
  } while (glance.bytes < 0 && errno == EINTR);
  // MSG_CTRUNC: there are descriptors, for which there was no room. They stay in the socket.
  glance.descriptors = glance.bytes >= 0 && (message.msg_flags & MSG_CTRUNC) != 0;
  return glance;
}

ssize_t receive_plain(int socket, std::span<std::byte> out) {
  const Glance glance = look(socket, out);
  if (glance.descriptors) {
    errno = EPERM;
    return -1;
  }
  if (glance.bytes <= 0) return glance.bytes;
  // Reads no byte beyond those looked at: more may have come since.
  ssize_t got = 0;
  do {
    got = ::recv(socket, out.data(), static_cast<std::size_t>(glance.bytes), MSG_DONTWAIT);
  } while (got < 0 && errno == EINTR);
  return got;
}

void close_listening(Descriptor socket, Aside& aside) {
  if (!socket) return;
  ::shutdown(socket.get(), SHUT_RDWR);  // no further thread waits on it
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags >= 0) ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK);
  for (;;) {
    Descriptor waiting(::accept4(socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!waiting) break;
    aside.close(std::move(waiting));
  }
}

}  // namespace paceline::attach
