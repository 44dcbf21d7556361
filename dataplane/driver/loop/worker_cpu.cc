#include "dataplane/driver/loop/worker_cpu.h"

#include <fmt/format.h>
#include <sched.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace paceline {

std::string pin_this_thread(std::uint32_t cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  if (cpu < CPU_SETSIZE && sched_setaffinity(0, sizeof set, &set) == 0) return "";
  return fmt::format("cpu = {}: {}", cpu,
                     cpu < CPU_SETSIZE && errno != EINVAL ? std::strerror(errno)
                                                          : "the process has no such processor");
}

int node_of_cpu(std::uint32_t cpu) {
  std::error_code error;
  const std::filesystem::directory_iterator entries(
      fmt::format("/sys/devices/system/cpu/cpu{}", cpu), error);
  if (error) return -1;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    constexpr std::string_view kNode = "node";
    if (!name.starts_with(kNode)) continue;
    int node = -1;
    const auto [end, code] =
        std::from_chars(name.data() + kNode.size(), name.data() + name.size(), node);
    if (code == std::errc{} && end == name.data() + name.size()) return node;
  }
  return -1;
}

std::string far_memory_line(const std::string& worker, std::uint32_t cpu, int cpu_node,
                            const std::string& port, int port_node) {
  if (cpu_node < 0 || port_node < 0 || cpu_node == port_node) return "";
  return fmt::format(
      "worker {}: cpu {} is on NUMA node {}, port {} on node {}: every packet crosses between "
      "them; "
      "choose a cpu of node {}",
      worker, cpu, cpu_node, port, port_node, port_node);
}

}  // namespace paceline
