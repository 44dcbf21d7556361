// Descriptors that a stranger puts into a Unix socket (SCM_RIGHTS). If a thread takes their message
// without room for them, the kernel closes them on that thread, and the close may last as long as
// the stranger likes. So a thread that others wait for looks first, takes no message with
// descriptors, and leaves the socket to Aside (aside.h).
#pragma once

#include <cstddef>
#include <span>

#include <sys/types.h>

#include "dataplane/attach/descriptors/aside.h"
#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::attach {

// Whether others may send descriptors there; of a listening socket, the sockets that it accepts
// inherit it. Linux 6.16; before that the kernel lets everybody, and this does nothing.
void allow_descriptors(int socket, bool allowed);

struct Glance {
  ssize_t bytes = -1;  // as of recv(MSG_PEEK | MSG_DONTWAIT), with errno
  bool descriptors = false;
};
// The beginning of the next message, which stays where it is.
Glance look(int socket, std::span<std::byte> out);

// As recv(MSG_DONTWAIT), for the only reader of a socket where no descriptors are expected: if some
// come, EPERM, and nothing is taken.
ssize_t receive_plain(int socket, std::span<std::byte> out);

// Closes a listening socket that no other process has open; its name is free afterwards. Another
// thread refuses the clients that wait.
void close_listening(Descriptor socket, Aside& aside);

}  // namespace paceline::attach
