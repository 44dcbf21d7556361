#include "dataplane/verbs/files/redirect.h"

#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace paceline::files {

namespace {

constexpr std::string_view kNodes = "/dev/infiniband";
constexpr std::array<std::string_view, 3> kRoots = {kNodes, "/sys/class/infiniband",
                                                    "/sys/class/infiniband_verbs"};

// UCX tries it by itself, and goes on without.
bool is_ucx() {
  void* const module = ::dlopen("libuct_rdmacm.so.0", RTLD_LAZY | RTLD_NOLOAD);
  if (module == nullptr) return false;
  ::dlclose(module);
  return true;
}

// Read once: the program may clear its environment, and other threads may be writing to it.
std::string_view tree() {
  static const char* const root = std::getenv("PACELINE_FILES");
  return root == nullptr ? std::string_view{} : std::string_view(root);
}

}  // namespace

void Path::look() {
  const std::string_view asked(path_);
  for (const std::string_view root : kRoots) {
    if (!asked.starts_with(root)) continue;
    if (asked.size() > root.size() && asked[root.size()] != '/') continue;
    const std::string_view in = tree();
    if (in.empty() || in.size() + asked.size() >= buffer_.size()) return;
    std::memcpy(buffer_.data(), in.data(), in.size());
    std::memcpy(buffer_.data() + in.size(), asked.data(), asked.size() + 1);
    node_ = root == kNodes;
    path_ = buffer_.data();
    return;
  }
}

void tell_of_missing(const char* asked) {
  constexpr std::string_view kLine =
      "paceline: rdma_cm (/dev/infiniband/rdma_cm) is not offered: connect queue pairs without it "
      "(perftest: without -R; docs/user-guide.md)\n";
  static std::atomic<bool> told{false};
  if (std::strcmp(asked, "/dev/infiniband/rdma_cm") != 0 || told.exchange(true)) return;
  const int error = errno;
  if (!is_ucx()) {
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kLine.data(), kLine.size());
  }
  errno = error;
}

}  // namespace paceline::files
