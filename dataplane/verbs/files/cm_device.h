// /dev/infiniband/rdma_cm as programs open it: the device of the kernel's connection manager, to
// which librdmacm writes commands and which is readable when an event waits. A socket of the
// service replaces it (attach/protocol.h, cm_channel), so that poll(), epoll and F_SETFL are the
// kernel's own; write() is intercepted, and its commands go to the service.
//
// A child of fork() may open the device, but not use what its parent opened: EACCES, as from the
// kernel for a descriptor that came from elsewhere.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace paceline::files {

class CmDevice {
 public:
  // A descriptor; -1 with errno, and a line on standard error, if the service refuses or is gone.
  static int open(int flags);

  // Whether this process has opened the device at all: until then nothing else needs a check.
  static bool in_use();
  // Whether writing these bytes to `file` is a command: the descriptor was opened as the device, or
  // duplicated from one. Costs a load for other descriptors, and fstat() where in doubt.
  static bool is_command(int file, const void* bytes, std::size_t size);
  // As write(2): `size`, or -1 with errno.
  static ssize_t write(int file, const void* bytes, std::size_t size);

  // Makes fstat() of a channel that was not duplicated show a character device. Does nothing for
  // other descriptors.
  static void disguise(int file, struct stat& status);
};

}  // namespace paceline::files
