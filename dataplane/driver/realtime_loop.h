// Runs engines on the calling thread in real time: the same poll(now) and next_deadline() that the
// virtual driver calls, with `now` read from a clock, once per turn. One thread per loop; an
// application's work (posting, reading completions) is done between polls on that same thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <span>

#include "dataplane/driver/tsc_clock.h"
#include "dataplane/port/port.h"
#include "dataplane/transport/engine.h"

namespace paceline {

// What an application does with the engine between two polls.
class RealtimeApp {
 public:
  RealtimeApp() = default;
  RealtimeApp(const RealtimeApp&) = delete;
  RealtimeApp& operator=(const RealtimeApp&) = delete;
  virtual ~RealtimeApp() = default;

  // Posts what it has and takes its completions; must not block. True when it posted or told the
  // engine something: the engine is then polled at the same time. Called once per turn of the loop.
  virtual bool step(Picos now) = 0;
};

struct RealtimeOptions {
  // Turns without work after which the thread gives up the processor for a moment; 0: never. A core
  // of its own wants 0, a machine with fewer cores than loops does not.
  std::uint32_t idle_turns_before_yield = 64;
};

struct RealtimeStats {
  std::uint64_t turns = 0;
  std::uint64_t polls = 0;
  std::uint64_t yields = 0;
  Picos stopped_at{0};  // time of the last turn
};

// One engine with what belongs to it; all outlive the loop.
struct RealtimeTask {
  transport::Engine* engine;
  const Port* port;  // the engine's
  RealtimeApp* app;
};

// Turn by turn, polls each engine when a packet has arrived, a deadline has come or the application
// asked, until `stop` is true. An engine on a device that has to be asked for packets is polled at
// every turn; a turn in which nothing came of that is an idle one. Time never goes back from turn
// to turn.
RealtimeStats realtime_loop(std::span<const RealtimeTask> tasks, const TscClock& clock,
                            const std::atomic<bool>& stop, const RealtimeOptions& options = {});

// The same with one engine.
RealtimeStats realtime_loop(transport::Engine& engine, const Port& port, const TscClock& clock,
                            const std::atomic<bool>& stop, RealtimeApp& app,
                            const RealtimeOptions& options = {});

}  // namespace paceline
