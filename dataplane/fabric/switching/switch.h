// An output-queued switch with a shared buffer. Queues are with the egress ports (egress.h); here
// is what they share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/fabric/switching/shared_buffer.h"

namespace paceline::fabric {

// Two cache lines of what packets touch come first.
struct alignas(64) Switch {
  static constexpr std::size_t kHotLines = 2;

  explicit Switch(SharedBuffer shared) : buffer(std::move(shared)) {}

  SharedBuffer buffer;
  std::uint64_t use_step_bytes = 0;          // next step of buffer use not reached so far
  std::uint32_t paused_count = 0;            // bits set in paused_ingress
  std::vector<std::uint64_t> backlogged;     // bit per port with queued packets
  std::vector<std::uint32_t> port_links;     // port number -> directed link that leaves by it
  std::vector<std::uint8_t> paused_ingress;  // per port: classes whose upstream was told to pause
  std::uint64_t spray = 0;                   // LoadBalance::spray_random: state of its draws

  void mark_backlogged(std::uint16_t port) {
    backlogged[port >> 6] |= std::uint64_t{1} << (port & 63);
  }
  void clear_backlogged(std::uint16_t port) {
    backlogged[port >> 6] &= ~(std::uint64_t{1} << (port & 63));
  }
};
static_assert(offsetof(Switch, port_links) <= 64 * Switch::kHotLines);

// Granularity in which the highest use of a buffer is known.
inline constexpr std::uint64_t kBufferUseStep = 16'384;

}  // namespace paceline::fabric
