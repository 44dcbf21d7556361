// Blocks writes to some pages of this process, by threads and system calls, while the pages' memory
// is exchanged: userfaultfd in write-protect mode. A writer waits until the pages are released;
// readers do not wait.
//
// Needs a descriptor that serves faults of the kernel, too (a read() into held pages would end with
// EFAULT otherwise): from /dev/userfaultfd, which the service may open and pass on, or from the
// system call where the program may.
#pragma once

#include <cstdint>

#include "dataplane/attach/descriptors/own_descriptor.h"

namespace paceline::verbs {

class PageHold {
 public:
  // `device`: an open /dev/userfaultfd, or nothing. 0, or an errno: this kernel, or this user, can
  // not; ENOTSUP when it can not hold shared memory (Linux 5.19), without which nothing is put
  // back.
  int open(const attach::Descriptor& device);
  void close() { file_.reset(); }
  explicit operator bool() const { return static_cast<bool>(file_); }

  // Whether pages that were never touched are held as well; otherwise they have to be touched
  // first.
  bool holds_untouched() const { return holds_untouched_; }

  // Holds whole pages of one mapping. A negative error number, with nothing held: EBUSY if the
  // program itself has a userfaultfd there. Writes only to the caller's stack, as do the two below.
  long hold(std::uint64_t begin, std::uint64_t bytes) const;
  // The memory was exchanged: waiting writers try again.
  void wake(std::uint64_t begin, std::uint64_t bytes) const;
  // It was not: as before.
  void undo(std::uint64_t begin, std::uint64_t bytes) const;

 private:
  attach::OwnDescriptor file_;
  bool holds_untouched_ = false;
};

}  // namespace paceline::verbs
