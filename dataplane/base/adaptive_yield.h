// Whether a waiting thread should yield the processor (sched_yield). It should if its partners
// answer within microseconds: each then runs as soon as the other waits, without a sleep and a
// wake-up call. It should not beside a job that has much to do: the kernel lets that job run for
// milliseconds, and counts the yield against the thread. The duration of a yield tells the two
// cases apart. After a long one the thread does not yield for a while, longer each time.
//
// Pure: the caller gives the times, in nanoseconds of one clock. One thread.
#pragma once

#include <algorithm>
#include <cstdint>

namespace paceline {

class AdaptiveYield {
 public:
  // Longer than partners need, shorter than a time slice of the kernel.
  static constexpr std::int64_t kLong = 200'000;
  static constexpr std::int64_t kLeastPause = 20'000'000;
  static constexpr std::int64_t kMostPause = 1'000'000'000;

  bool worthwhile(std::int64_t now) const { return now >= not_before_; }

  // The thread yielded at `from` and ran again at `until`.
  void yielded(std::int64_t from, std::int64_t until) {
    if (until - from >= kLong) {
      pause_ = std::clamp(pause_ * 2, kLeastPause, kMostPause);
      not_before_ = until + pause_;
    } else if (pause_ != 0 && until - not_before_ > pause_) {
      pause_ = 0;  // short yields for as long as the pause was
    }
  }

 private:
  std::int64_t not_before_ = 0;
  std::int64_t pause_ = 0;
};

}  // namespace paceline
