// Decides how a loop rests after a turn without work. Pure: time in, advice out; RunLoop follows
// it.
#pragma once

#include <cstdint>

#include "dataplane/base/units.h"

namespace paceline {

enum class Idle : std::uint8_t {
  spin,   // asks again at once: least delay, all of the core
  yield,  // lets others on the core go first, when there are any
  sleep,  // spins, then yields, then sleeps, longer and longer
};

struct IdleSettings {
  Idle how = Idle::yield;
  // yield: turns without work before the first; a few in a row belong to any conversation.
  std::uint32_t turns_before_yield = 64;
  // sleep: yields after this long without work, sleeps after ten times as long.
  Picos spin_for = picos_from_micros(20);
  // sleep: the awaited thread may want the same processor; spins a sixteenth as long.
  bool few_processors = false;
  // sleep: the first duration, then twice as long each time up to longest_sleep. The first packet
  // after a pause may be noticed that late.
  Picos shortest_sleep = picos_from_micros(50);
  Picos longest_sleep = picos_from_micros(2000);
};

class IdlePolicy {
 public:
  enum class Action : std::uint8_t { again, yield, sleep };
  struct Advice {
    Action action = Action::again;
    Picos time{0};  // of the sleep
  };

  explicit IdlePolicy(const IdleSettings& settings) : settings_(settings) {}

  // A turn had something to do.
  void worked() { turns_ = 0; }
  // A turn found no work. `deadline`: when something must be done whatever arrives. `may_sleep` is
  // called once per pause, before the first sleep: false if an answer is awaited whose delay is
  // measured.
  template <class MaySleep>
  Advice idle(Picos now, Picos deadline, MaySleep may_sleep) {
    if (turns_++ == 0) begin(now);
    if (settings_.how == Idle::spin) return {};
    if (settings_.how == Idle::yield) {
      if (turns_ < settings_.turns_before_yield) return {};
      turns_ = 0;
      return {Action::yield};
    }
    const Picos idle_for = now - since_;
    if (idle_for < (settings_.few_processors ? settings_.spin_for / 16 : settings_.spin_for))
      return {};
    if (idle_for < settings_.spin_for * 10) return {Action::yield};
    if (!asked_) {
      asked_ = true;
      sleeps_ = may_sleep();
    }
    // Too short for a sleep, whose end is never exact.
    if (!sleeps_ || (deadline != kNever && deadline - now < settings_.shortest_sleep)) {
      return {Action::yield};
    }
    return {Action::sleep, next_sleep(now, deadline)};
  }

 private:
  void begin(Picos now) {
    since_ = now;
    asked_ = sleeps_ = false;
    sleep_ = settings_.shortest_sleep;
  }
  Picos next_sleep(Picos now, Picos deadline) {
    Picos time = sleep_;
    sleep_ = earlier(sleep_ * 2, settings_.longest_sleep);
    if (deadline != kNever) time = earlier(time, deadline - now);
    return time;
  }

  IdleSettings settings_;
  std::uint64_t turns_ = 0;
  Picos since_{0};
  Picos sleep_{0};
  bool asked_ = false;
  bool sleeps_ = false;
};

}  // namespace paceline
