// An output-queued switch with a shared buffer. Queues are with the egress ports (egress.h); here
// is what they share.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/base/prefetch.h"
#include "dataplane/fabric/switching/pause_control.h"
#include "dataplane/fabric/switching/shared_buffer.h"

namespace paceline::fabric {

// Granularity in which the highest use of a buffer is known.
inline constexpr std::uint64_t kBufferUseStep = 16'384;

// Two cache lines of what packets touch come first.
struct alignas(64) Switch {
  static constexpr std::size_t kHotLines = 2;

  // `links`: by port, the directed links that leave the switch.
  Switch(SharedBuffer shared, std::vector<std::uint32_t> links)
      : buffer(std::move(shared)),
        backlogged((links.size() + 63) / 64, 0),
        pauses(links.size()),
        port_links(std::move(links)) {}

  SharedBuffer buffer;
  // From this buffer use on, queueing a packet needs a closer look: use_step_bytes, or 0 where
  // every packet may be sampled.
  std::uint64_t look_from_bytes = kBufferUseStep;
  std::vector<std::uint64_t> backlogged;  // bit per port with queued packets
  PauseControl pauses;
  std::vector<std::uint32_t> port_links;          // port number -> directed link that leaves by it
  std::uint64_t use_step_bytes = kBufferUseStep;  // next step of buffer use not reached so far

  void prefetch() const {
    const auto* bytes = reinterpret_cast<const std::byte*>(this);
    for (std::size_t line = 0; line < kHotLines; ++line) prefetch_line(bytes + 64 * line);
  }
  // Calls visit(link) for every link that leaves the switch and has packets queued, by port.
  template <class Visit>
  void over_backlogged(Visit&& visit) const {
    for (std::size_t word = 0; word < backlogged.size(); ++word) {
      for (std::uint64_t bits = backlogged[word]; bits != 0; bits &= bits - 1) {
        visit(port_links[word << 6 | static_cast<std::size_t>(std::countr_zero(bits))]);
      }
    }
  }
  void mark_backlogged(std::uint16_t port) {
    backlogged[port >> 6] |= std::uint64_t{1} << (port & 63);
  }
  void clear_backlogged(std::uint16_t port) {
    backlogged[port >> 6] &= ~(std::uint64_t{1} << (port & 63));
  }
};
static_assert(offsetof(Switch, pauses) < 64 * Switch::kHotLines);  // pauses.active() is hot

}  // namespace paceline::fabric
