// Samples the queue pairs of a virtual world while it runs, as an agent on every host would, and
// turns the samples into windows. Counters only grow, so samples may be dropped.
#pragma once

#include <cstdint>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::tools {

class EvidenceRecorder {
 public:
  // A run ends with half of this to this many windows, whatever its length.
  static constexpr std::size_t kMostWindows = 64;
  static constexpr Picos kFirstDistance = picos_from_micros(20);
  // How often it looks whether NICs are sending. No round number: packets may leave at steady
  // distances.
  static constexpr Picos kGlance{913'700};

  // Takes a sample; call it from RunControl::sample every kGlance. The first is kept after
  // kFirstDistance. When kMostWindows are held, every second one is dropped and the distance
  // doubles.
  void look(VirtualWorld& world, Picos at);
  // Call it from RunControl::finished: takes a last sample and writes the windows, and the pairs
  // that sent data with their paths.
  void finish(VirtualWorld& world, diagnosis::Evidence& out);

 private:
  struct Counters {
    std::uint64_t bytes = 0;
    std::uint32_t losses = 0;
    std::uint32_t timeouts = 0;
    std::uint32_t marks = 0;
    std::uint32_t rtt_ns = 0;  // smoothed; the least of the samples since the look before
  };
  struct PortCounters {  // of all ports of a NIC
    Picos pausing{0};
    std::uint64_t reclassed = 0;
    std::uint64_t sent_bytes = 0;
    std::uint64_t glances = 0;  // looks among these that found it sending
    std::uint64_t received_bytes = 0;
    std::uint64_t received = 0;
    std::uint64_t marked = 0;
  };
  struct Look {
    Picos at{0};
    std::vector<std::vector<Counters>> nics;  // by NIC: its queue pairs in ascending order
    std::vector<PortCounters> ports;          // by NIC
  };
  Look look_at(VirtualWorld& world, Picos at) const;
  void look_at_ports(VirtualWorld& world, Look& look) const;
  void glance(VirtualWorld& world, Picos at);
  static void keep_least(const Look& dropped, Look& kept);

  Picos distance_ = kFirstDistance;
  Picos next_ = kFirstDistance;  // samples before it are skipped
  std::vector<Look> looks_;
  std::vector<std::uint64_t> sending_;  // glances that found it so, by NIC
};

}  // namespace paceline::tools
