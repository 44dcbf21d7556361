// A descriptor of a library in another's program. The program may close it (closefrom(3), a daemon
// that starts) and then open something of its own under the same number. The library must not read
// from, write to or close that.
#pragma once

#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include "dataplane/attach/descriptors/descriptor.h"

namespace paceline::attach {

class OwnDescriptor {
 public:
  OwnDescriptor() = default;
  OwnDescriptor(OwnDescriptor&& other) noexcept { *this = std::move(other); }
  OwnDescriptor& operator=(OwnDescriptor&& other) noexcept {
    if (this == &other) return *this;
    reset();
    file_ = std::move(other.file_);
    device_ = other.device_;
    inode_ = other.inode_;
    return *this;
  }
  OwnDescriptor& operator=(Descriptor file) noexcept {
    reset();
    struct stat status {};
    if (file && ::fstat(file.get(), &status) == 0) {
      device_ = status.st_dev;
      inode_ = status.st_ino;
    }
    file_ = std::move(file);
    return *this;
  }
  OwnDescriptor(const OwnDescriptor&) = delete;
  OwnDescriptor& operator=(const OwnDescriptor&) = delete;
  ~OwnDescriptor() { reset(); }

  // Asks the kernel each time. Event descriptors and the like share one inode: the program's cannot
  // be told from ours.
  explicit operator bool() const {
    struct stat status {};
    if (!file_) return false;
    // A program that is not allowed to ask (seccomp) does not close descriptors that it does not
    // know.
    if (::fstat(file_.get(), &status) != 0) return errno != EBADF;
    return status.st_dev == device_ && status.st_ino == inode_;
  }
  // -1 if it is not ours any more.
  int get() const { return *this ? file_.get() : -1; }
  // Without asking.
  int number() const { return file_.get(); }
  void reset() {
    if (file_ && !*this) file_.release();
    file_.reset();
  }

 private:
  Descriptor file_;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

}  // namespace paceline::attach
