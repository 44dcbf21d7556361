#include "dataplane/driver/loop/worker.h"

#include <sys/prctl.h>

#include <ctime>
#include <thread>

namespace paceline {

namespace {

// May end early, by a signal: the next turn comes the sooner.
void sleep_once(Picos time) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  const std::int64_t ns = to_nanos(time).count;
  timespec span{};
  span.tv_sec = static_cast<std::time_t>(ns / kSecond);
  span.tv_nsec = static_cast<long>(ns % kSecond);
  nanosleep(&span, nullptr);
}

}  // namespace

Worker::Worker(const WorkerSettings& settings)
    : settings_(settings), watch_(settings.watch), idle_(settings.idle) {}

// True when there was something to do.
bool Worker::run_task(const WorkerTask& task, Picos now, Picos gap) {
  transport::Engine& engine = *task.engine;
  // Before the engine hears of the stop: from then on its next deadline is later than now, and on a
  // machine where every turn is late nothing would ever be due.
  const bool was_due = engine.next_deadline() <= now;
  if (gap.count != 0) [[unlikely]]
    engine.stopped(now, gap);
  const bool looks = was_due || task.port->rx_ready_at() <= now;
  std::size_t received = 0;
  if (looks) {
    if (task.resolver != nullptr) task.resolver->poll(now);
    received = engine.take(now);
  }
  // What has just come is answered in the same turn.
  const bool stepped = task.app != nullptr && task.app->step(now);
  if (!looks) {
    if (!stepped) return false;
    if (task.resolver != nullptr) task.resolver->poll(now);
  }
  engine.give(now);
  ++counters_.polls;
  return was_due || stepped || received != 0;
}

bool Worker::turn(Picos now, Picos asked) {
  const Picos gap = watch_.turn(now, asked);
  ++counters_.turns;
  bool busy = false;
  for (const WorkerTask& task : tasks_) busy |= run_task(task, now, gap);
  if (busy) ++counters_.busy_turns;
  counters_.stopped_at = now;
  return busy;
}

Picos Worker::next_deadline() const {
  Picos next = kNever;
  for (const WorkerTask& task : tasks_) {
    next = earlier(next, task.engine->next_deadline());
    if (task.resolver != nullptr) next = earlier(next, task.resolver->next_deadline());
    if (task.app != nullptr) next = earlier(next, task.app->next_step());
  }
  return next;
}

// Nothing that was sent is still to be answered.
bool Worker::quiet() const {
  for (const WorkerTask& task : tasks_) {
    if (task.engine->inflight_bytes() != 0) return false;
  }
  return true;
}

Picos Worker::rest(Picos now) {
  const Picos deadline = settings_.idle.how == Idle::sleep ? next_deadline() : kNever;
  const IdlePolicy::Advice advice = idle_.idle(now, deadline, [this] { return quiet(); });
  switch (advice.action) {
    case IdlePolicy::Action::again:
      break;
    case IdlePolicy::Action::yield:
      ++counters_.yields;
      std::this_thread::yield();
      break;
    case IdlePolicy::Action::sleep:
      ++counters_.sleeps;
      counters_.slept = counters_.slept + advice.time;
      sleep_once(advice.time);
      return advice.time;
  }
  return Picos{0};
}

void Worker::run(const TscClock& clock, const std::atomic<bool>& stop) {
  // Else the kernel adds 50 us to every sleep. Of this thread only; where it is refused, sleeps are
  // longer by that.
  if (settings_.idle.how == Idle::sleep) prctl(PR_SET_TIMERSLACK, 1000UL);
  for (const WorkerTask& task : tasks_) task.port->use_clock(clock.poll_clock());
  Picos now{0};
  Picos asked{0};
  while (!stop.load(std::memory_order_acquire)) {
    now = later(now, clock.now());  // the thread may have moved to a core whose counter lags
    if (turn(now, asked)) {
      idle_.worked();
      asked = Picos{0};
    } else {
      asked = rest(now);
    }
  }
  for (const WorkerTask& task : tasks_) task.port->use_clock({});
}

}  // namespace paceline
