// Which paths this library answers for, and from where: the device files of a kernel with RDMA
// NICs (/dev/infiniband, /sys/class/infiniband, /sys/class/infiniband_verbs) are looked up in the
// tree that PACELINE_FILES names, which `paceline exec` renders. UCX and Open MPI look at them
// before they ask libibverbs; without this library they find no device.
//
// Not answered for: paths relative to an open folder outside the tree, "/sys/class" itself (it
// lists no infiniband), glob() and nftw(), which walk inside the C library, and raw system calls.
#pragma once

#include <dlfcn.h>

#include <array>
#include <climits>

#define PACELINE_EXPORTED __attribute__((visibility("default")))

namespace paceline::files {

// A path as the C library shall see it. Costs two comparisons for paths that are none of ours.
class Path {
 public:
  explicit Path(const char* path) : path_(path) {
    if (path != nullptr && path[0] == '/' && (path[1] == 'd' || path[1] == 's')) look();
  }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  const char* get() const { return path_; }
  // A device node: the tree has links to a character device in their place, which are to be
  // followed even by who asks about links.
  bool is_node() const { return node_; }

 private:
  void look();

  const char* path_;
  bool node_ = false;
  std::array<char, PATH_MAX> buffer_;  // not initialised: written when the path is ours
};

// After a path of ours could not be opened: where it is the connection manager's, says once in a
// process that there is none, since librdmacm's callers report a missing file, or no memory. Keeps
// errno.
void tell_of_missing(const char* asked);

// The function of that name behind this library. The C library has all that are asked for.
template <class Function>
Function* behind(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace paceline::files
