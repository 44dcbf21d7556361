// Round trips measured by bytes, whatever the transport reports and however it repairs losses: one
// ends when a packet sent after its beginning has left the network.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/interface/event.h"

namespace paceline::cc {

struct RoundTrip {
  std::uint64_t began_at = 0;  // sent_total then

  void begin(const Event& e) { began_at = e.sent_total; }

  // True once per round trip; the next one has begun then.
  bool over(const Event& e) {
    const std::uint64_t gone = e.sent_total - std::min(e.inflight_bytes, e.sent_total);
    if (gone <= began_at) return false;
    began_at = e.sent_total;
    return true;
  }
};

}  // namespace paceline::cc
