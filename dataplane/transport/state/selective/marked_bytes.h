// CE-marked bytes at the peer, as far as congestion control has been told of them.
#pragma once

#include <algorithm>
#include <cstdint>

namespace paceline::transport {

class MarkedBytes {
 public:
  // The total of the last XACK that counted.
  std::uint32_t total() const { return total_; }
  // Newly marked bytes among `acked`, when an XACK carries the peer's `total`. XACKs may come late,
  // twice, or not at all; no mark counts twice. A packet that arrived twice may be marked twice, so
  // at most `acked` is returned.
  std::uint32_t take(std::uint32_t total, std::uint64_t acked) {
    const std::uint32_t marked = total - total_;
    if (acked == 0 || marked == 0 || marked > 0x7FFF'FFFFU) return 0;
    total_ = total;
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(marked, acked));
  }

 private:
  std::uint32_t total_ = 0;
};

}  // namespace paceline::transport
