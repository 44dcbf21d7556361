// Clocks for worlds in real time that do as a test says: time passes only when a thread waits, or
// by steps drawn from a seed.
#pragma once

#include "dataplane/base/numbers/random.h"
#include "dataplane/driver/clock/wall_clock.h"

namespace paceline {

// A machine without limits: a waiting thread comes back at the exact time, and nothing takes any.
class ExactClock final : public WallClock {
 public:
  Picos now() override { return now_; }
  void wait(Picos until) override { now_ = later(now_, until); }

 private:
  Picos now_{5'000'000};  // some origin
};

// A busy one: every reading is a little later than the one before, every wait ends late, and now
// and then the machine stops for a while.
class RestlessClock final : public WallClock {
 public:
  struct Habits {
    Picos work = picos_from_nanos(400);      // a reading after the last, at most
    Picos oversleep = picos_from_micros(3);  // a wait too long, at most
    double stops = 0.001;                    // of all waits that end with a stop
    Picos stop = picos_from_micros(4000);    // its length, at most
  };
  RestlessClock(std::uint64_t seed, Habits habits) : habits_(habits), random_(seed) {}

  Picos now() override { return now_ += draw(habits_.work); }
  void wait(Picos until) override {
    now_ = later(now_, until) + draw(habits_.oversleep);
    if (random_.uniform() < habits_.stops) {
      ++stops_;
      now_ += draw(habits_.stop);
    }
  }
  std::uint64_t stops() const { return stops_; }

 private:
  Picos draw(Picos most) {
    return {static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(most.count)))};
  }

  Habits habits_;
  Random random_;
  Picos now_{0};
  std::uint64_t stops_ = 0;
};

}  // namespace paceline
