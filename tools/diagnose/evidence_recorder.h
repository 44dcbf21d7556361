// Looks at the queue pairs of a virtual world while it runs, as an agent on every host would, and
// makes windows of it. The counters of the looks only grow, so that looks may be left out.
#pragma once

#include <cstdint>
#include <vector>

#include "control/diagnosis/evidence.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::tools {

class EvidenceRecorder {
 public:
  // A run of any length ends with half as many to as many windows.
  static constexpr std::size_t kMostWindows = 64;
  static constexpr Picos kFirstDistance = picos_from_micros(20);

  // For RunControl::sample, every kFirstDistance. Whenever kMostWindows are held, every second one
  // is let go and the distance doubles.
  void look(VirtualWorld& world, Picos at);
  // For RunControl::finished: a last look, then the windows and those pairs that sent anything,
  // with the ways of their packets.
  void finish(VirtualWorld& world, diagnosis::Evidence& out);

 private:
  struct Counters {
    std::uint64_t bytes = 0;
    std::uint32_t losses = 0;
    std::uint32_t timeouts = 0;
    std::uint32_t marks = 0;
    std::uint32_t rtt_ns = 0;
  };
  struct Look {
    Picos at{0};
    std::vector<std::vector<Counters>> nics;  // by NIC, its queue pairs in the order of numbers
  };
  static Look look_at(VirtualWorld& world, Picos at);

  Picos distance_ = kFirstDistance;
  Picos next_ = kFirstDistance;  // looks before it are skipped
  std::vector<Look> looks_;
};

}  // namespace paceline::tools
