// Emulated NICs of a testbed in virtual time that write to one another, as a worker of the service
// runs them, with probes between all of them or without: what probing costs those who do not ask
// for it.
#pragma once

#include <cstdint>

namespace paceline::perf {

struct ProbedCounts {
  std::uint64_t packets = 0;  // of data, first transmissions: the work, with probes or without
  std::uint64_t probes = 0;   // answered
};

// `messages` of 256 KiB of each NIC. The probes take all of their usual budget, 0.05 % of the
// links' rate.
ProbedCounts run_probed_world(bool probes, std::uint64_t messages);

}  // namespace paceline::perf
