// Where a thread runs: one processor, and the memory that is near to it.
#pragma once

#include <cstdint>
#include <string>

namespace paceline {

// The calling thread stays on this processor from now on. Empty, or why not.
std::string pin_this_thread(std::uint32_t cpu);

// The NUMA node of a processor; -1 where the system does not say.
int node_of_cpu(std::uint32_t cpu);

// A line for the log when a worker's processor and a port's device are on different nodes; empty
// when they are on one, or it is not known.
std::string far_memory_line(const std::string& worker, std::uint32_t cpu, int cpu_node,
                            const std::string& port, int port_node);

}  // namespace paceline
