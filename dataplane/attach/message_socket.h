// Messages of the attach protocol over a Unix socket of type SEQPACKET: each as a whole, with its
// file descriptors. What is received is as untrusted as any packet; this code only ensures that
// nothing is cut off unnoticed and no descriptor is leaked.
#pragma once

#include <sys/time.h>

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "dataplane/attach/descriptors/descriptor.h"
#include "dataplane/attach/protocol.h"

namespace paceline::attach {

struct Message {
  Header header{};
  std::vector<std::byte> body;
  std::vector<Descriptor> descriptors;
  // The process that sent it, as the kernel says (SO_PASSCRED); 0: the socket does not ask for it.
  int sender = 0;

  // The body as a T: missing bytes are zero, bytes beyond T are ignored (see beyond()).
  template <class T>
  T as() const;
  // The part of the body behind a T.
  template <class T>
  std::span<const std::byte> beyond() const {
    return body.size() <= sizeof(T) ? std::span<const std::byte>{}
                                    : std::span<const std::byte>(body).subspan(sizeof(T));
  }
  template <class T>
  void append(const T& part);
};

enum class Transfer : std::uint8_t {
  done,
  closed,  // the other end is gone
  again,   // nothing there, or no room; non-blocking sockets only
  broken,  // no message of this protocol: cut off, too short, wrong magic or major version
  failed,  // errno
};

// SIGPIPE is not raised. Descriptors are sent, not given up.
Transfer send_message(int socket, const Header& header, std::span<const std::byte> body,
                      std::span<const int> descriptors = {});
// Received descriptors close on exec.
Transfer receive_message(int socket, Message& out);

// How long a service may take to accept a connection, and to answer on it.
inline constexpr timeval kConnectPatience{5, 0};
inline constexpr timeval kNoPatience{0, 1};  // the kernel makes it a tick; 0 would be for ever

// A connected socket, or an invalid descriptor with errno. A path longer than sockaddr_un holds
// gives ENAMETOOLONG. A server that listens but does not accept, and whose queue is full, gives
// ETIMEDOUT after the patience. A path that begins with '@' is in the abstract namespace.
Descriptor connect_socket(const std::string& path, timeval patience = kConnectPatience);
// A listening, non-blocking socket, in place of a stale one of that name; EADDRINUSE if a server
// listens there. `mode`: permissions of its file.
Descriptor listen_socket(const std::string& path, unsigned mode);

template <class T>
T Message::as() const {
  static_assert(std::is_trivially_copyable_v<T>);
  T out{};
  auto* const to = reinterpret_cast<std::byte*>(&out);
  for (std::size_t i = 0; i < sizeof(T) && i < body.size(); ++i) to[i] = body[i];
  return out;
}

template <class T>
void Message::append(const T& part) {
  static_assert(std::is_trivially_copyable_v<T>);
  const auto* const from = reinterpret_cast<const std::byte*>(&part);
  body.insert(body.end(), from, from + sizeof(T));
}

}  // namespace paceline::attach
