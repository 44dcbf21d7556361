// Hosts of a virtual world that probe each other, by clocks that are off: [probing] of a scenario,
// and its faults of clocks. What they find out is compared with what is so.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/base/containers/slab.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/virtual/world_host.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/probing/prober.h"

namespace paceline {

class VirtualWorld;

// The bytes of a packet that a probe fills.
inline constexpr std::uint16_t kProbePayload = 64;

// Has every host probe all others from time 0 on.
void add_probes(const config::Scenario& scenario, const fabric::FabricSpec& spec,
                Slab<WorldHost>& hosts);

// By nearest rank; all 0 without values.
struct ProbeQuantiles {
  double p50 = 0;
  double p99 = 0;
  double most = 0;
};

// What one host knows of another.
struct ProbedPair {
  std::uint32_t from = 0;
  std::uint32_t to = 0;
  probing::PathCounts counts;
  ProbeQuantiles there_ns;  // delays of one way, by the clocks as they are known at the end
  bool clock = false;       // the rest is known
  double offset_ns = 0;     // the other's clock less its own, at the end
  double true_offset_ns = 0;
  double drift_ppb = 0;
  double true_drift_ppb = 0;
  double uncertainty_ns = 0;   // half of the least round trip
  std::uint64_t restarts = 0;  // how often it found that a clock was set
};

struct ProbeReport {
  std::vector<ProbedPair> pairs;  // empty: there was no probing
  probing::PathCounts totals;
  ProbeQuantiles there_ns;         // of all pairs together
  ProbeQuantiles offset_error_ns;  // of the pairs, without signs
  ProbeQuantiles drift_error_ppb;
  std::uint64_t restarts = 0;
};

// After the run.
ProbeReport report_probes(const VirtualWorld& world);

}  // namespace paceline
