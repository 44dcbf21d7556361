// The loop of a thread that works in real time: reads the clock, takes a turn, and rests if the
// turn had nothing to do. A turn gets the time for which the host stopped the thread before it,
// without the loop's own sleeps.
//
// Before it sleeps, the loop announces it and takes one more turn. Another thread that brings work
// either sees the announcement, and wakes this thread, or the turn sees the work.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <thread>

#include "dataplane/base/adaptive_yield.h"
#include "dataplane/base/units.h"
#include "dataplane/driver/loop/worker_idle.h"
#include "dataplane/driver/loop/worker_watch.h"

namespace paceline {

timespec to_timespec(Picos time);

// Base of the body of a loop. The derived class has a member `bool on_turn(Picos now, Picos gap)`,
// true if there was something to do, and may hide the other members. No call is virtual.
struct LoopBody {
  // When the next turn is needed though nothing arrives.
  Picos next_deadline(Picos) const { return kNever; }
  // False: an answer is awaited whose delay is a measurement.
  bool may_sleep() const { return true; }
  void announce_sleep() {}
  // May end early: the next turn comes the sooner.
  void sleep(Picos time);
  // After the announcement, whether it slept or not.
  void awake() {}
};

class RunLoop {
 public:
  // The thread sleeps this long if a yield does not pay.
  static constexpr Picos kShortSleep = picos_from_micros(50);

  RunLoop(const IdleSettings& idle, const WatchSettings& watch)
      : watch_(watch), idle_(idle), sleeps_(idle.how == Idle::sleep) {}

  // Until `stop` is true or the clock shows more than `until`. Clock: has now(). Time does not go
  // back from turn to turn.
  template <class Clock, class Body>
  void run(Clock& clock, Body& body, const std::atomic<bool>& stop, Picos until = kNever);

  WorkerWatch& watch() { return watch_; }
  const WorkerWatch& watch() const { return watch_; }

 private:
  // After a turn without work. `now` moves on when it takes one more turn. Returns for how long the
  // thread slept on purpose.
  template <class Clock, class Body>
  Picos rest(Clock& clock, Body& body, const std::atomic<bool>& stop, Picos& now);
  static void begin_short_sleeps();

  WorkerWatch watch_;
  IdlePolicy idle_;
  AdaptiveYield yield_;
  bool sleeps_;
};

template <class Clock, class Body>
void RunLoop::run(Clock& clock, Body& body, const std::atomic<bool>& stop, Picos until) {
  if (sleeps_) begin_short_sleeps();
  Picos now{0};
  Picos asked{0};
  while (!stop.load(std::memory_order_acquire)) {
    now = later(now, clock.now());  // the thread may have moved to a core whose counter lags
    if (now > until) break;
    const Picos away = watch_.turn(now, asked) - asked;
    asked = Picos{0};
    if (body.on_turn(now, away > watch_.settings().hiccup ? away : Picos{0})) {
      idle_.worked();
    } else {
      asked = rest(clock, body, stop, now);
    }
  }
}

template <class Clock, class Body>
Picos RunLoop::rest(Clock& clock, Body& body, const std::atomic<bool>& stop, Picos& now) {
  const Picos due = sleeps_ ? body.next_deadline(now) : kNever;
  IdlePolicy::Advice advice = idle_.idle(now, due, [&body] { return body.may_sleep(); });
  if (advice.action == IdlePolicy::Action::yield) {
    const std::int64_t from = to_nanos(now).count;
    const bool adapts = sleeps_ && body.may_sleep();
    if (!adapts || yield_.worthwhile(from)) {
      std::this_thread::yield();
      if (adapts) yield_.yielded(from, to_nanos(clock.now()).count);
    } else if (due == kNever || due - now > kShortSleep) {
      advice = {IdlePolicy::Action::sleep, kShortSleep};
    }
  }
  if (advice.action != IdlePolicy::Action::sleep) return Picos{0};
  Picos slept{0};
  body.announce_sleep();
  now = later(now, clock.now());
  watch_.turn(now);
  if (body.on_turn(now, Picos{0})) {
    idle_.worked();
  } else {
    const Picos deadline = body.next_deadline(now);
    const Picos time = deadline == kNever ? advice.time : earlier(advice.time, deadline - now);
    if (time.count > 0 && !stop.load(std::memory_order_acquire)) {
      body.sleep(time);
      slept = earlier(later(clock.now() - now, Picos{0}), time);
    }
  }
  body.awake();
  return slept;
}

}  // namespace paceline
