// Which of several equal paths a flow's next packet takes. A path is a UDP source port: switches
// hash it (ECMP), so different ports mostly take different ways. Paths are used in turn; one on
// which a packet was marked or lost is left out for as many turns as it has penalties, and is tried
// again after that. No clock, no randomness: the same feedback gives the same choices.
//
// With several planes (links of the NIC), a port belongs to the plane of its number modulo their
// number. Planes are used in strict turn, or the NIC would not fill its links: only a path within
// the plane is left out. A whole plane is left out while nothing arrives by any of its paths. This
// follows the "bitmap of bad entropies" of packet spraying with skips (uet-htsim, STrack 3.2)
// rather than recycled entropies (REPS): it keeps what is known about a path, instead of what is in
// flight.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "dataplane/wire/headers/headers.h"

namespace paceline::transport {

enum class Multipath : std::uint8_t {
  none,    // one path per connection
  packet,  // the next path for every packet
  chunk,   // the same path for some packets in a row
};

class PathSet {
 public:
  static constexpr unsigned kMost = 64;
  static constexpr unsigned kMostPlanes = 8;

  PathSet() = default;
  // `paths` 1..64 from `base_port` on; `run`: packets that take the same path in a row;
  // `planes` 1..8.
  PathSet(std::uint16_t base_port, unsigned paths, unsigned run, unsigned planes = 1)
      : base_(base_port),
        paths_(static_cast<std::uint8_t>(std::clamp(paths, 1U, kMost))),
        planes_(static_cast<std::uint8_t>(std::clamp(planes, 1U, paths_ + 0U))),
        run_(static_cast<std::uint16_t>(std::max(run, 1U))) {}

  // The port for the next packet. `planes_up`: bit p, whether the NIC's link to plane p is up.
  std::uint16_t next_port(std::uint8_t planes_up = 0xFF) {
    if (paths_ == 1) return base_;
    if (left_ == 0) {
      planes_ > 1 ? advance_plane(planes_up) : advance();
      left_ = run_;
    }
    --left_;
    return port_of(current_);
  }

  // The port that next_port() gave last.
  std::uint16_t last_port() const { return paths_ == 1 ? base_ : port_of(current_); }

  // A packet that took `port` was marked, or slow / was lost. Ports outside the set are ignored.
  void marked(std::uint16_t port) {
    const unsigned index = index_of(port);
    if (index < paths_) punish(index, std::min(penalties_[index] + 1U, 2U));
  }
  // The more losses in a row, the longer the path is left out: 4 turns, 8, ... 64.
  void lost(std::uint16_t port) {
    const unsigned index = index_of(port);
    if (index >= paths_) return;
    if (strikes_[index] < 5) ++strikes_[index];
    punish(index, 2U << strikes_[index]);
  }
  // A packet that took `port` has arrived.
  void arrived(std::uint16_t port) {
    const unsigned index = index_of(port);
    if (index < paths_) strikes_[index] = 0;
  }
  // With several planes: whether losses on the path mean that it carries nothing at all, rather
  // than that it is congested. Nothing has arrived by it since a loss before this one.
  bool failed(std::uint16_t port) const {
    const unsigned index = index_of(port);
    return planes_ > 1 && index < paths_ && strikes_[index] >= 2;
  }
  // Forgets what was known of all paths: it does not hold any more.
  void forget() {
    penalties_.fill(0);
    strikes_.fill(0);
  }
  // Sets another base port, for a set of one path.
  void move_to(std::uint16_t port) { base_ = port; }
  unsigned size() const { return paths_; }
  bool has_planes() const { return planes_ > 1; }
  unsigned plane_of(std::uint16_t port) const { return port % planes_; }

  // Turns that the path will be left out.
  unsigned penalty(std::uint16_t port) const {
    const unsigned index = index_of(port);
    return index < paths_ ? penalties_[index] : 0;
  }

 private:
  static constexpr std::uint16_t kPortBits = 0x3FFF;  // below kFirstSourcePort's

  std::uint16_t port_of(unsigned index) const {
    return static_cast<std::uint16_t>(wire::kFirstSourcePort | ((base_ + index) & kPortBits));
  }
  unsigned index_of(std::uint16_t port) const {
    return static_cast<unsigned>(port - base_) & kPortBits;
  }
  void advance() {
    // If all paths are bad, none is worse than the others: it is the turn of the next.
    for (unsigned tries = 0; tries <= paths_; ++tries) {
      current_ = static_cast<std::uint8_t>(current_ + 1 < paths_ ? current_ + 1 : 0);
      if (penalties_[current_] == 0) return;
      --penalties_[current_];
    }
  }
  void next_plane() { plane_ = static_cast<std::uint8_t>(plane_ + 1 < planes_ ? plane_ + 1 : 0); }
  bool is_up(std::uint8_t planes_up) const {
    return (planes_up >> port_of(plane_) % planes_ & 1U) != 0;
  }
  unsigned paths_on(unsigned plane) const { return (paths_ - plane + planes_ - 1U) / planes_; }
  // Selects the next plane that is not down, and on it the next path that is not left out, or else
  // just the next.
  void advance_plane(std::uint8_t planes_up) {
    for (unsigned tries = 0; tries < planes_; ++tries) {
      next_plane();
      const auto bit = static_cast<std::uint8_t>(1U << plane_);
      if (!is_up(planes_up)) {
        link_was_down_ |= bit;
        continue;
      }
      if ((link_was_down_ & bit) != 0) forget_plane();
      const unsigned paths = paths_on(plane_);
      bool down = true;
      for (unsigned i = 0; i < paths; ++i) {
        const unsigned index = plane_ + (cursors_[plane_] + i) % paths * planes_;
        if (penalties_[index] == 0) {
          for (unsigned left_out = 0; left_out < i; ++left_out) {
            --penalties_[plane_ + (cursors_[plane_] + left_out) % paths * planes_];
          }
          use(index, i + 1);
          return;
        }
        down = down && strikes_[index] >= 2;
      }
      const unsigned next = plane_ + cursors_[plane_] % paths * planes_;
      --penalties_[next];
      if (!down) {
        use(next, 1);
        return;
      }
      cursors_[plane_] = static_cast<std::uint8_t>((cursors_[plane_] + 1U) % paths);
    }
    // All planes are down, so each gets a packet in turn: one of them may have come back.
    for (unsigned tries = 0; tries < planes_; ++tries) {
      next_plane();
      if (is_up(planes_up)) break;
    }
    use(plane_ + cursors_[plane_] * planes_, 1);
  }
  // The link to plane_ is back: losses there before tell nothing any more.
  void forget_plane() {
    for (unsigned index = plane_; index < paths_; index += planes_) {
      penalties_[index] = strikes_[index] = 0;
    }
    link_was_down_ = static_cast<std::uint8_t>(link_was_down_ & ~(1U << plane_));
  }
  void use(unsigned index, unsigned steps) {
    current_ = static_cast<std::uint8_t>(index);
    cursors_[plane_] = static_cast<std::uint8_t>((cursors_[plane_] + steps) % paths_on(plane_));
  }
  void punish(unsigned index, unsigned turns) {
    if (paths_ == 1) return;
    penalties_[index] = static_cast<std::uint8_t>(std::max<unsigned>(penalties_[index], turns));
    if (index == current_) left_ = 0;  // the run ends
  }

  std::uint16_t base_ = wire::kFirstSourcePort;
  std::uint8_t paths_ = 1;
  std::uint8_t planes_ = 1;
  std::uint8_t current_ = 0;
  std::uint8_t link_was_down_ = 0;                   // bit by plane, since it was last used
  std::uint8_t plane_ = 0;                           // of current_
  std::array<std::uint8_t, kMostPlanes> cursors_{};  // by plane: its next path
  std::uint16_t run_ = 1;
  std::uint16_t left_ = 0;  // of the run
  std::array<std::uint8_t, kMost> penalties_{};
  std::array<std::uint8_t, kMost> strikes_{};  // losses in a row
};

}  // namespace paceline::transport
