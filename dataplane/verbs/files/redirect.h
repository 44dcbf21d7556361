// Redirects paths of the device files that a kernel with RDMA NICs has (/dev/infiniband,
// /sys/class/infiniband, /sys/class/infiniband_verbs) into the tree that PACELINE_FILES names.
// `paceline exec` makes that tree. UCX and Open MPI read these files before they call libibverbs;
// without this library they find no device.
//
// Not redirected: paths relative to an open folder outside the tree, "/sys/class" itself (it lists
// no infiniband), glob() and nftw(), which walk inside the C library, and raw system calls.
#pragma once

#include <dlfcn.h>

#include <array>
#include <climits>
#include <string_view>

#define PACELINE_EXPORTED __attribute__((visibility("default")))

namespace paceline::files {

// A path after redirection. Paths that are not redirected cost two comparisons.
class Path {
 public:
  explicit Path(const char* path) : path_(path) {
    if (path != nullptr && path[0] == '/' && (path[1] == 'd' || path[1] == 's')) look();
  }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;

  const char* get() const { return path_; }
  bool is_redirected() const { return path_ == buffer_.data(); }
  // True for a device node. The tree has a link to a character device in its place, which calls
  // about links must follow as well.
  bool is_node() const { return node_; }
  // True for the node of the RDMA connection manager, which cm_device.h opens.
  bool is_connection_manager() const { return manager_; }
  // Whether it may lead into the tree though it is not redirected: from a folder there, or as
  // realpath() has told it.
  bool may_lead_in() const;

 private:
  void look();

  const char* path_;
  bool node_ = false;
  bool manager_ = false;
  std::array<char, PATH_MAX> buffer_;  // not initialised: written if the path is redirected
};

// The part of a real path behind the tree's folder of devices:
// "h0/ports/1/hw_counters/np_cnp_sent". Empty: it is not in that folder.
std::string_view in_device_folder(std::string_view real_path);

// The C library's function of that name, which this library hides. All requested names exist.
template <class Function>
Function* next_function(const char* name) {
  return reinterpret_cast<Function*>(dlsym(RTLD_NEXT, name));
}

}  // namespace paceline::files
