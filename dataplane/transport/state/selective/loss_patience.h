// How long selective repeat waits for a packet before it counts as lost. Two measures adapt: the
// tolerated reordering, in quarters of the least round trip; and how often the wait of a probe is
// doubled. Both grow when something was sent again in vain, and shrink slowly.
#pragma once

#include <algorithm>
#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::transport {

class LossPatience {
 public:
  // How much later than the packets behind it a packet may arrive.
  Picos reordering(std::uint32_t least_round_trip_ns) const {
    return picos_from_nanos(least_round_trip_ns) / 4 * quarters_;
  }
  Picos probe_wait(Picos wait) const { return wait * (std::int64_t{1} << doublings_); }

  // quarters: of the least round trip.
  void expect_reordering(std::uint8_t quarters) { quarters_ = quarters; }
  // Round trips are measured anew: probes wait only as long as these require.
  void restart() { doublings_ = 0; }

  // A packet was sent again in vain.
  void on_repeated_packet() { grow(std::min(doublings_ + 1, kMostDoublings)); }
  // A READ response came twice. A request that was repeated in vain brings all of its responses
  // twice, and READs measure fewer round trips than WRITEs: allow fewer doublings.
  void on_repeated_response() {
    grow(std::max<int>(doublings_, std::min(doublings_ + 1, kMostForResponses)));
  }
  // A round trip was measured: after eight of them, one doubling less.
  void on_round_trip() {
    if (doublings_ == 0 || ++round_trips_ != 8) return;
    --doublings_;
    round_trips_ = 0;
  }
  // A packet was lost: after 64 losses in a row, a quarter less.
  void on_loss() {
    if (++losses_ != 64) return;
    losses_ = 0;
    if (quarters_ > 1) --quarters_;
  }

 private:
  static constexpr int kMostDoublings = 10;
  static constexpr int kMostForResponses = 3;
  static constexpr int kMostQuarters = 64;

  void grow(int doublings) {
    doublings_ = static_cast<std::uint8_t>(doublings);
    round_trips_ = 0;
    quarters_ = static_cast<std::uint8_t>(std::min(quarters_ + 4, kMostQuarters));
    losses_ = 0;
  }

  std::uint8_t quarters_ = 1;
  std::uint8_t losses_ = 0;       // since a packet was last sent again in vain
  std::uint8_t doublings_ = 0;    // of the wait of a probe
  std::uint8_t round_trips_ = 0;  // measured since doublings_ changed
};

}  // namespace paceline::transport
