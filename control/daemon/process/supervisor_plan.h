// When to start the service, when to start it again, and when to leave it alone: a state machine of
// what is known about it and of time. Pure; the shell around it (supervisor.h) connects, starts and
// signals.
//
// A service that serves programs is never ended for being silent: its workers may move traffic
// while its control thread does not answer. Only a service that has never answered since we started
// it is.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline::daemon {

struct SupervisorSettings {
  bool starts = false;                       // there is a testbed to start; else it only attaches
  std::int64_t least_wait_ns = 250'000'000;  // before the second start; doubled with each failure
  std::int64_t most_wait_ns = 30'000'000'000;
  // After running this long, an end is not a failed start.
  std::int64_t good_after_ns = 30'000'000'000;
  std::int64_t start_limit_ns = 20'000'000'000;  // to answer, once started
  std::int64_t end_limit_ns = 10'000'000'000;    // to end, once told
  std::uint64_t seed = 1;                        // of the jitter
};

// The observed state of the service at a point in time.
struct ServiceFacts {
  bool connected = false;
  bool absent = false;  // at the last try to connect, nothing listened
  bool alive = false;   // the process that was started or connected to last lives
};

class SupervisorPlan {
 public:
  enum class State : std::uint8_t {
    looking,   // not known yet whether there is one
    starting,  // started, has not answered yet
    running,   // connected
    silent,    // lives, and is not connected
    waiting,   // until it is started again (without a testbed: by a user)
    ending,    // told to end, for another to take its place
  };
  enum class Action : std::uint8_t {
    none,
    start,
    end_politely,  // SIGTERM to the process
    end_firmly,    // SIGKILL
  };

  explicit SupervisorPlan(const SupervisorSettings& settings)
      : settings_(settings), random_(settings.seed) {}

  // The action to take now. Call it several times a second, and whenever something has changed.
  Action step(std::int64_t now_ns, const ServiceFacts& facts);
  // An action could not be carried out (no such program): as if it had ended at once.
  void failed(std::int64_t now_ns);
  // Ends the running service and starts another, at the next steps. False: none runs, or this plan
  // does not start any.
  bool replace(std::int64_t now_ns);

  State state() const { return state_; }
  // Starts that did not last, in a row.
  std::uint32_t failures() const { return failures_; }
  std::uint64_t starts() const { return starts_; }
  // For `waiting`: when the next start is due.
  std::int64_t due_ns() const { return due_ns_; }
  // Events since the last call, one sentence each.
  std::vector<std::string> take_notes();

 private:
  Action gone(std::int64_t now_ns);
  void enter(State state, std::int64_t now_ns);
  Action start(std::int64_t now_ns);

  SupervisorSettings settings_;
  Random random_;
  State state_ = State::looking;
  std::int64_t since_ns_ = 0;  // in this state
  std::int64_t good_ns_ = 0;   // connected first since
  std::int64_t due_ns_ = 0;
  bool told_politely_ = false;  // to end
  bool told_firmly_ = false;
  std::uint32_t failures_ = 0;
  std::uint64_t starts_ = 0;
  std::vector<std::string> notes_;
};

std::string_view supervisor_state_name(SupervisorPlan::State state);

}  // namespace paceline::daemon
