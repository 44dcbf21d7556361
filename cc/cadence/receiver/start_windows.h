// Counts the channels that sent unscheduled bytes in the last 8 RTT, in two windows of 4 RTT each.
// The unscheduled bytes that the port can take are divided among them. A channel that starts in
// both windows counts once.
#pragma once

#include <cstdint>

#include "cc/cadence/params.h"
#include "cc/cadence/receiver/channel_table.h"

namespace paceline::cc::cadence {

class StartWindows {
 public:
  void advance(std::int64_t now, const CadenceParams& p);
  void count(Channel& ch);  // it starts in the present window
  // U_adv: unscheduled bytes that a sender may announce.
  std::uint32_t budget(const CadenceParams& p) const;

 private:
  std::int64_t began_at_ = 0;  // the present window
  std::uint32_t now_ = 0;      // channels that started in it...
  std::uint32_t before_ = 0;   // ... and in the one before
  std::uint32_t both_ = 0;     // channels that are counted in both
  std::uint8_t window_ = 1;
};

}  // namespace paceline::cc::cadence
