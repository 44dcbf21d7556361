#include "cc/cadence/receiver/start_windows.h"

#include <algorithm>

namespace paceline::cc::cadence {

void StartWindows::advance(std::int64_t now, const CadenceParams& p) {
  const std::int64_t span = 4 * p.rtt_ns;
  if (now < began_at_ + span) return;
  before_ = now < began_at_ + 2 * span ? now_ : 0;
  now_ = 0;
  both_ = 0;
  began_at_ = now;
  ++window_;
}

void StartWindows::count(Channel& ch) {
  if (ch.start_window == window_) return;
  if (static_cast<std::uint8_t>(window_ - ch.start_window) == 1) ++both_;
  ch.start_window = window_;
  ++now_;
}

std::uint32_t StartWindows::budget(const CadenceParams& p) const {
  return std::max(p.budget_bytes / std::max(1U, now_ + before_ - both_), p.packet_bytes);
}

}  // namespace paceline::cc::cadence
