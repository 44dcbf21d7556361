// Runs engines to completion on the calling thread: the same next_deadline() and, in its two
// halves, poll(now) that the virtual driver calls, with `now` read from a clock, once per turn. A
// worker is one thread with its engines, their ports and applications; nothing of it is shared with
// another.
//
// A turn, for each engine: when a packet may have arrived or a deadline has come, the port in front
// is given the time (ResolvingPort: neighbours) and the engine takes what there is; the application
// has its step; and what either brought about leaves. So a message is answered in the turn that
// finds it. Where the host stood still between two turns, engines are told first.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/driver/loop/run_loop.h"
#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/port/port.h"
#include "dataplane/transport/engine.h"

namespace paceline {

// What an application does with the engine between what has come and what is sent.
class WorkerApp {
 public:
  WorkerApp() = default;
  WorkerApp(const WorkerApp&) = delete;
  WorkerApp& operator=(const WorkerApp&) = delete;
  virtual ~WorkerApp() = default;

  // Posts what it has and takes its completions; must not block. True when it posted or told the
  // engine something: the engine then sends at the same time. Called once per turn.
  virtual bool step(Picos now) = 0;
  // When it wants a step at the latest, though nothing completes: how long a worker may sleep.
  virtual Picos next_step() const { return kNever; }
};

// One engine with what belongs to it; all outlive the worker.
struct WorkerTask {
  transport::Engine* engine = nullptr;
  Port* port = nullptr;                          // the engine's
  WorkerApp* app = nullptr;                      // may be none
  neighbour::ResolvingPort* resolver = nullptr;  // that port, when it is one
};

struct WorkerSettings {
  std::string name = "worker";
  IdleSettings idle{};
  WatchSettings watch{};
};

struct WorkerCounters {
  std::uint64_t turns = 0;
  std::uint64_t busy_turns = 0;  // of these, something was due or arrived
  std::uint64_t polls = 0;
  std::uint64_t sleeps = 0;
  Picos stopped_at{0};  // time of the last turn
};

class Worker {
 public:
  explicit Worker(const WorkerSettings& settings = {});

  // Before it runs.
  void add(const WorkerTask& task) { tasks_.push_back(task); }

  // One turn at `now`, which never goes back; true when there was something to do. For worlds that
  // have a clock of their own; `asked` is for how long they meant to be away.
  bool turn(Picos now, Picos asked = Picos{0});
  // When the next turn is needed though nothing arrives.
  Picos next_deadline() const;
  // Turns until `stop` is true (run_loop.h). Ports are told the clock.
  void run(const TscClock& clock, const std::atomic<bool>& stop);

  const WorkerSettings& settings() const { return settings_; }
  // After run(), or on its thread.
  const WorkerCounters& counters() const { return counters_; }
  // Any thread, at any time.
  const WorkerWatch& watch() const { return loop_.watch(); }

 private:
  struct Body;
  bool run_tasks(Picos now, Picos gap);
  bool run_task(const WorkerTask& task, Picos now, Picos gap);
  bool quiet() const;

  WorkerSettings settings_;
  std::vector<WorkerTask> tasks_;
  RunLoop loop_;
  WorkerCounters counters_;
};

}  // namespace paceline
