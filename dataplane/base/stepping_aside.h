// Whether a thread that waits for a worker should leave the processor on which that worker runs.
// With few processors a program and the worker may come to lie on one, where each keeps the other
// from running while a processor next to it has only a peer that waits as well.
//
// It helps who does nothing but wait with us, one wait soon after the other: then peers that share
// a processor give it up to one another. A thread that spins on something else in between (memory
// that a peer writes to) gives nothing up there, and is better off anywhere but beside its peer. So
// only many waits in a row that follow one another closely count.
//
// Pure: times are the caller's, in nanoseconds of one clock. One thread.
#pragma once

#include <cstdint>

namespace paceline {

class SteppingAside {
 public:
  static constexpr std::int64_t kClose = 4'000;  // between the end of a wait and the next
  static constexpr std::uint32_t kWaits = 16;
  // The kernel's next balancing may undo it; moving costs some ten microseconds.
  static constexpr std::int64_t kPause = 20'000'000;

  // A wait has lasted until `now`, for the first time longer than a short spin.
  void waits(std::int64_t now) {
    close_ = now - seen_ < kClose ? close_ + 1 : 0;
    seen_ = now;
  }
  // It goes on.
  void goes_on(std::int64_t now) { seen_ = now; }

  bool worthwhile(std::int64_t now) const { return close_ >= kWaits && now >= not_before_; }
  // It was done, or could not be.
  void stepped(std::int64_t now) {
    not_before_ = now + kPause;
    close_ = 0;
  }

 private:
  std::int64_t seen_ = 0;
  std::int64_t not_before_ = 0;
  std::uint32_t close_ = 0;
};

}  // namespace paceline
