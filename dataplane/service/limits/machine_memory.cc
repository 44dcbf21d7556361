#include "dataplane/service/limits/machine_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace paceline::service {

namespace {

// The number in a limit file; `most` for "max", or if there is no number or no file.
std::uint64_t limit_in(const std::string& path, std::uint64_t most) {
  std::uint64_t value = 0;
  std::ifstream file(path);
  return file >> value ? std::min(value, most) : most;
}

// The least limit of the control group and of all groups above it.
std::uint64_t limit_up(const std::string& root, std::string group, const char* name,
                       std::uint64_t most) {
  for (;;) {
    most = limit_in(root + group + "/" + name, most);
    const std::size_t slash = group.rfind('/');
    if (group.empty() || slash == std::string::npos) return most;
    group.resize(slash);
  }
}

}  // namespace

std::uint64_t group_limit(const std::string& membership, const std::string& root,
                          std::uint64_t most) {
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    // number:controllers:group
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first == std::string::npos ? first : first + 1);
    if (second == std::string::npos) continue;
    std::string controllers(1, ',');
    controllers.append(line, first + 1, second - first - 1).push_back(',');
    const std::string group = line.substr(second + 1);
    if (controllers == ",,") {
      most = limit_up(root, group, "memory.max", most);
      most = limit_up(root + "/unified", group, "memory.max", most);
    } else if (controllers.find(",memory,") != std::string::npos) {
      most = limit_up(root + "/memory", group, "memory.limit_in_bytes", most);
    }
  }
  return most;
}

std::uint64_t machine_memory() {
  const auto pages = static_cast<std::uint64_t>(std::max(1L, ::sysconf(_SC_PHYS_PAGES)));
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  std::ifstream file("/proc/self/cgroup");
  const std::string membership((std::istreambuf_iterator<char>(file)), {});
  return group_limit(membership, "/sys/fs/cgroup", pages * page);
}

std::uint64_t process_descriptors() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 ? limit.rlim_cur : 1024;
}

std::uint64_t process_mappings() {
  constexpr std::uint64_t kUsual = 65'530;
  std::uint64_t value = 0;
  std::ifstream file("/proc/sys/vm/max_map_count");
  return file >> value ? value : kUsual;
}

}  // namespace paceline::service
