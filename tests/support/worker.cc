#include "tests/support/worker.h"

namespace paceline {

Worker::Worker(const WorkerSettings& settings)
    : settings_(settings), loop_(settings.idle, settings.watch) {}

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

bool Worker::turn(Picos now, Picos asked) { return run_tasks(now, loop_.watch().turn(now, asked)); }

bool Worker::run_tasks(Picos now, Picos gap) {
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
    if (task.engine->view().inflight_bytes() != 0) return false;
  }
  return true;
}

struct Worker::Body : LoopBody {
  explicit Body(Worker& of) : worker(of) {}

  bool on_turn(Picos now, Picos gap) { return worker.run_tasks(now, gap); }
  Picos next_deadline(Picos) const { return worker.next_deadline(); }
  bool may_sleep() const { return worker.quiet(); }
  void sleep(Picos time) {
    ++worker.counters_.sleeps;
    LoopBody::sleep(time);
  }

  Worker& worker;
};

void Worker::run(const TscClock& clock, const std::atomic<bool>& stop) {
  for (const WorkerTask& task : tasks_) task.port->use_clock(clock.poll_clock());
  Body body(*this);
  loop_.run(clock, body, stop);
  for (const WorkerTask& task : tasks_) task.port->use_clock({});
}

}  // namespace paceline
