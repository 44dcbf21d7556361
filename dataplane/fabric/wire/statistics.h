// Counters of the fabric. They are exact at the time given to Network::finish(). Counting never
// changes a result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::fabric {

enum class DropReason : std::uint8_t {
  buffer_full = 0,     // lossy class: above the dynamic threshold of its egress queue
  headroom_exhausted,  // lossless class: neither shared buffer nor headroom left
  no_route,            // destination is not a host of the fabric, or is unreachable
  link_loss,           // LinkSpec::loss
  control_loss,        // FabricSpec::drop_control_ppm
  link_down,           // on the wire when the link failed, or on its way to a failed link
};
inline constexpr std::size_t kDropReasons = 6;
const char* to_string(DropReason reason);

struct NetworkStats {
  std::uint64_t hops = 0;              // link transmissions of packets, ACKs included, pauses not
  std::uint64_t hop_bytes = 0;         // on the wire, over all links
  std::uint64_t injected_packets = 0;  // accepted by host ports, or made by switches
  std::uint64_t injected_bytes = 0;
  std::uint64_t delivered_packets = 0;  // handed to a host port's receive queue
  std::uint64_t delivered_bytes = 0;
  std::uint64_t marked_packets = 0;
  std::uint64_t notices = 0;          // sent by switches, part of injected_packets
  std::uint64_t trimmed_packets = 0;  // lost their payload, and continued
  std::uint64_t trimmed_bytes = 0;    // cut off them, on the wire
  std::uint64_t corrupted_packets = 0;
  std::uint64_t duplicated_packets = 0;  // copies put on a wire; each is delivered or dropped, too
  std::uint64_t duplicated_bytes = 0;
  std::uint64_t reordered_packets = 0;  // delayed so that others could overtake
  std::uint64_t link_failures = 0;      // links that went down, each counted once
  std::array<std::uint64_t, kDropReasons> drops{};
  std::array<std::uint64_t, kDropReasons> dropped_bytes{};
  std::uint64_t pause_frames = 0;    // X-OFF sent by switches
  std::uint64_t resume_frames = 0;   // X-ON
  std::uint64_t credit_updates = 0;  // with credits instead of pauses
  Picos pause_time{0};  // a class was paused, or without credits on a free wire; summed over
                        // (directed link, class)
  std::uint64_t buffer_used_max = 0;  // most bytes in use in any switch's buffer, rounded down to a
                                      // multiple of kBufferUseStep (16 KiB)
  friend bool operator==(const NetworkStats&, const NetworkStats&) = default;
  NetworkStats& operator+=(const NetworkStats& other);  // of another part of the same fabric

  std::uint64_t total_drops() const {
    std::uint64_t sum = 0;
    for (const std::uint64_t n : drops) sum += n;
    return sum;
  }
};

// One directed link that leaves a switch.
struct EgressStats {
  std::uint64_t packets = 0;  // put on the wire
  std::uint64_t bytes = 0;
  std::uint64_t marked = 0;
  std::uint64_t trimmed = 0;
  std::uint64_t drops = 0;
  std::uint64_t queued_bytes = 0;  // now
  std::uint64_t max_bytes = 0;     // deepest, the arriving packet included, over all classes
  double mean_bytes = 0;           // time-weighted from 0 to now
  Picos pause_time{0};             // this link was paused, summed over classes

  friend bool operator==(const EgressStats&, const EgressStats&) = default;
};

}  // namespace paceline::fabric
