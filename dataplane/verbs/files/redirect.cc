#include "dataplane/verbs/files/redirect.h"

#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace paceline::files {

namespace {

constexpr std::string_view kNodes = "/dev/infiniband";
constexpr std::string_view kManager = "/dev/infiniband/rdma_cm";
constexpr std::string_view kDevices = "/sys/class/infiniband";
constexpr std::array<std::string_view, 3> kRoots = {kNodes, kDevices,
                                                    "/sys/class/infiniband_verbs"};

// Read once: the program may clear its environment, and other threads may be writing to it.
std::string_view tree() {
  static const char* const root = std::getenv("PACELINE_FILES");
  return root == nullptr ? std::string_view{} : std::string_view(root);
}

// A path of this process was redirected, or it began in a folder of the tree.
std::atomic<bool> entered{false};

[[gnu::constructor]] void look_where_it_begins() {
  std::array<char, PATH_MAX> folder{};
  const ssize_t size = ::readlink("/proc/self/cwd", folder.data(), folder.size());
  const std::string_view in = tree();
  if (size <= 0 || in.empty()) return;
  if (std::string_view(folder.data(), static_cast<std::size_t>(size)).starts_with(in)) {
    entered.store(true, std::memory_order_relaxed);
  }
}

}  // namespace

bool Path::may_lead_in() const {
  if (path_ == nullptr || !entered.load(std::memory_order_relaxed)) return false;
  return path_[0] != '/' || std::string_view(path_).starts_with(tree());
}

std::string_view in_device_folder(std::string_view real_path) {
  const std::string_view in = tree();
  if (in.empty() || !real_path.starts_with(in)) return {};
  real_path.remove_prefix(in.size());
  if (!real_path.starts_with(kDevices) || real_path.size() <= kDevices.size() + 1) return {};
  real_path.remove_prefix(kDevices.size());
  return real_path[0] == '/' ? real_path.substr(1) : std::string_view{};
}

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
    manager_ = asked == kManager;
    entered.store(true, std::memory_order_relaxed);
    path_ = buffer_.data();
    return;
  }
}

}  // namespace paceline::files
