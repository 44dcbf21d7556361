// A token bucket: how many messages a tenant may still give to a worker now. Time is an argument.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline::service {

class MessageBudget {
 public:
  // `rate` messages a second, 0: no limit; at most `burst` (>= 1) at once.
  MessageBudget(std::uint64_t rate, std::uint32_t burst)
      : interval_(rate == 0 ? 0 : kSecond / static_cast<std::int64_t>(rate)), burst_(burst) {}

  // How many may be sent at `now`; the caller spends as many as it uses.
  std::uint32_t available(Picos now) const {
    if (interval_ == 0) return kUnlimited;
    if (full_at_ <= now.count) return static_cast<std::uint32_t>(burst_);
    const std::int64_t missing = (full_at_ - now.count + interval_ - 1) / interval_;
    return missing >= burst_ ? 0 : static_cast<std::uint32_t>(burst_ - missing);
  }
  void spend(Picos now, std::uint32_t messages) {
    if (interval_ == 0) return;
    if (full_at_ < now.count) full_at_ = now.count;
    full_at_ += interval_ * messages;
  }
  // When there is one again.
  Picos next(Picos now) const {
    return available(now) != 0 ? now : Picos{full_at_ - interval_ * (std::int64_t{burst_} - 1)};
  }

  static constexpr std::uint32_t kUnlimited = 0xFFFF'FFFF;

 private:
  static constexpr std::int64_t kSecond = 1'000'000'000'000;
  std::int64_t interval_;  // picoseconds a message; 0: no limit
  std::int64_t burst_;
  std::int64_t full_at_ = 0;  // when the bucket is full again
};

}  // namespace paceline::service
