// An event of a link at a given time: it fails, comes back, or its properties change.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::fabric {

enum class LinkAction : std::uint8_t {
  down,     // packets on the wire are lost, with the one being sent; see FabricSpec
  up,       // empty wire, no pauses
  rate,     // of packets that start from now on; the packet being sent ends as it began
  delay,    // likewise; a packet never overtakes another by a shorter delay, it follows 1 ps behind
  loss,     // probability from now on
  corrupt,  // likewise
  duplicate,  // likewise
  reorder,    // likewise
  mark_off,   // the switch at its beginning marks nothing that leaves by it
  mark_on,    // it marks again, by the curve of FabricSpec::ecn
  mark_at,    // likewise, with `factor` times its thresholds
  reclass,    // the host at its beginning sends data in `traffic_class`; kTrafficClasses: as it is
  // The host at its beginning tells the switch to pause, or to continue.
  pause,
  resume,
  // Repeated: that host takes arriving packets at `rate`, and tells the switch to pause while too
  // much waits; 0: as fast as they come, from now on.
  take,
  // Cancels what was planned for the link before this.
  forget,
};

// Link i of a spec has the directions a to b and b to a: bit 0 and bit 1.
inline constexpr std::uint8_t kBothDirections = 3;

struct LinkEvent {
  Picos at{0};             // 0: before the first packet
  std::uint32_t link = 0;  // index into FabricSpec::links
  LinkAction action = LinkAction::down;
  Rate rate{};             // LinkAction::rate, take
  Picos delay{};           // LinkAction::delay
  double probability = 0;  // loss, corrupt, duplicate, reorder
  // A link fails and comes back in both; the rest may be of one.
  std::uint8_t directions = kBothDirections;
  std::uint8_t traffic_class = kTrafficClasses;  // LinkAction::reclass
  double factor = 1;                             // LinkAction::mark_at
  // LinkAction::loss: the link's random draws restart from this seed; 0: they continue.
  std::uint64_t seed = 0;
  // Repeats at this interval, before `until`; 0: once.
  Picos every{0};
  Picos until = kNever;
};

}  // namespace paceline::fabric
