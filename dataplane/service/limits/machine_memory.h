// Resources available to this process. Memory: that of the machine, or the limit of its control
// group or of a group above it.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::service {

std::uint64_t machine_memory();
std::uint64_t process_descriptors();  // RLIMIT_NOFILE
std::uint64_t process_mappings();     // vm.max_map_count

// The least limit that the groups of `membership` (the text of /proc/PID/cgroup) have under `root`
// (/sys/fs/cgroup), version 1 or 2; without one `most`.
std::uint64_t group_limit(const std::string& membership, const std::string& root,
                          std::uint64_t most);

}  // namespace paceline::service
