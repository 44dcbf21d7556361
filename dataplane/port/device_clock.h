// Converts times of a device's free-running clock to times of the engine. Both clocks are read
// together now and then. The last sixteen pairs give the rate, the latest pair the offset. A pair
// that took long to read is inaccurate and is left out. If a pair contradicts the pairs before it
// (the device's clock was set, stopped or wrapped early), the conversion starts again; until pairs
// span 8 ms no time is given.
//
// A stamp is accepted if the packet can have come at that time: not after the poll that found it,
// and not long before the last poll that emptied the queue. A stamp later than the one before it
// gives no earlier time.
//
// Any frequency from 10 kHz to 100 GHz; ticks are 64 bits and may wrap. Reads no clock itself. One
// thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "dataplane/base/units.h"

namespace paceline {

// Both clocks: the device's was read at some moment between the two.
struct ClockPair {
  Picos before{0};
  std::uint64_t ticks = 0;
  Picos after{0};
};

struct DeviceClockCounters {
  std::uint64_t stamps = 0;         // times told
  std::uint64_t not_ready = 0;      // asked for one with too few pairs
  std::uint64_t too_early = 0;      // refused: before a poll that would have found it
  std::uint64_t too_late = 0;       // refused: after the poll that found it
  std::uint64_t pairs = 0;          // taken
  std::uint64_t pairs_refused = 0;  // took too long, or the device's clock stood still
  std::uint64_t jumps = 0;          // times that the conversion started again
};

class DeviceClock {
 public:
  // A pair that took longer is left out.
  static constexpr Picos kMostWidth = picos_from_micros(20);
  // How long before the last poll that left nothing behind a packet may have come: what a device
  // takes to hand it over.
  static constexpr Picos kHandOver = picos_from_micros(100);

  // Whether it is time for another pair: a millisecond after the last one at first, then ten.
  bool wants_pair(Picos now) const { return now >= next_pair_; }
  void pair(const ClockPair& pair);
  // The engine has another clock now: starts again. Counters continue.
  void forget();
  bool ready() const { return ready_; }

  // The time of a stamp that a poll at `now` found; `emptied`: when a poll last emptied the queue.
  // Nothing: the stamp is not credible, or the time is not known yet (counted).
  std::optional<Picos> time_of(std::uint64_t ticks, Picos emptied, Picos now);

  // Ticks per second; 0 when not ready.
  double frequency() const;
  const DeviceClockCounters& counters() const { return counters_; }

 private:
  struct Point {
    std::uint64_t ticks = 0;
    Picos at{0};
    Picos half{0};  // of the width: it may be wrong by that
  };
  static constexpr std::size_t kPoints = 16;
  static constexpr unsigned kMostRefused = 64;  // in a row, before it starts again

  const Point& newest() const { return points_[(first_ + count_ - 1) % kPoints]; }
  Picos convert(std::uint64_t ticks) const;
  Picos doubt(Picos away) const;
  bool explains(const Point& point) const;
  void add(const Point& point);
  void restart();
  std::optional<Picos> refuse(std::uint64_t& reason);

  std::array<Point, kPoints> points_{};
  std::size_t first_ = 0;
  std::size_t count_ = 0;
  std::uint64_t rate_ = 0;     // picoseconds per tick, times 2^32
  std::int64_t rate_ppb_ = 0;  // which may be wrong by that
  bool ready_ = false;
  Picos next_pair_{0};
  std::uint64_t last_ticks_ = 0;
  Picos last_{-1};  // what they gave; -1: none yet
  unsigned refused_ = 0;
  DeviceClockCounters counters_;
};

}  // namespace paceline
