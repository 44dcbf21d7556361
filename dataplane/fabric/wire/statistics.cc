#include "dataplane/fabric/wire/statistics.h"

#include <algorithm>

namespace paceline::fabric {

const char* to_string(DropReason reason) {
  switch (reason) {
    case DropReason::buffer_full:
      return "buffer_full";
    case DropReason::headroom_exhausted:
      return "headroom_exhausted";
    case DropReason::no_route:
      return "no_route";
    case DropReason::link_loss:
      return "link_loss";
    case DropReason::control_loss:
      return "control_loss";
    case DropReason::link_down:
      return "link_down";
  }
  return "unknown";
}

NetworkStats& NetworkStats::operator+=(const NetworkStats& other) {
  hops += other.hops;
  hop_bytes += other.hop_bytes;
  injected_packets += other.injected_packets;
  injected_bytes += other.injected_bytes;
  delivered_packets += other.delivered_packets;
  delivered_bytes += other.delivered_bytes;
  marked_packets += other.marked_packets;
  notices += other.notices;
  trimmed_packets += other.trimmed_packets;
  trimmed_bytes += other.trimmed_bytes;
  corrupted_packets += other.corrupted_packets;
  duplicated_packets += other.duplicated_packets;
  duplicated_bytes += other.duplicated_bytes;
  reordered_packets += other.reordered_packets;
  link_failures += other.link_failures;
  for (std::size_t i = 0; i < kDropReasons; ++i) {
    drops[i] += other.drops[i];
    dropped_bytes[i] += other.dropped_bytes[i];
  }
  pause_frames += other.pause_frames;
  resume_frames += other.resume_frames;
  credit_updates += other.credit_updates;
  pause_time += other.pause_time;
  buffer_used_max = std::max(buffer_used_max, other.buffer_used_max);
  return *this;
}

}  // namespace paceline::fabric
