// Whether it is worth giving the processor up (sched_yield) while waiting for somebody who may need
// it. Between partners that answer within microseconds it is: each runs as soon as the other waits,
// without a sleep and a call to wake up. Beside a job that has much to do it is not: the kernel
// lets that one run for milliseconds, and counts it against whoever gave way. Which of the two it
// is shows in how long it took; after a long one nobody gives way for a while, longer each time.
//
// Pure: times are the caller's, in nanoseconds of one clock. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace paceline {

class GivingWay {
 public:
  // Longer than partners need, and shorter than a slice that the kernel gives to anybody else.
  static constexpr std::int64_t kLong = 200'000;
  static constexpr std::int64_t kLeastPause = 20'000'000;
  static constexpr std::int64_t kMostPause = 1'000'000'000;

  bool worthwhile(std::int64_t now) const { return now >= not_before_; }

  // It was given up at `from` and had again at `until`.
  void gave(std::int64_t from, std::int64_t until) {
    if (until - from >= kLong) {
      pause_ = std::clamp(pause_ * 2, kLeastPause, kMostPause);
      not_before_ = until + pause_;
    } else if (pause_ != 0 && until - not_before_ > pause_) {
      pause_ = 0;  // it has been well for as long as it was avoided
    }
  }

 private:
  std::int64_t not_before_ = 0;
  std::int64_t pause_ = 0;
};

}  // namespace paceline
