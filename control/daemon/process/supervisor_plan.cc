#include "control/daemon/process/supervisor_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace paceline::daemon {

using Action = SupervisorPlan::Action;

std::string_view supervisor_state_name(SupervisorPlan::State state) {
  switch (state) {
    case SupervisorPlan::State::looking:
      return "looking";
    case SupervisorPlan::State::starting:
      return "starting";
    case SupervisorPlan::State::running:
      return "running";
    case SupervisorPlan::State::silent:
      return "silent";
    case SupervisorPlan::State::waiting:
      return "waiting";
    case SupervisorPlan::State::ending:
      return "ending";
  }
  return "looking";
}

std::vector<std::string> SupervisorPlan::take_notes() { return std::exchange(notes_, {}); }

void SupervisorPlan::enter(State state, std::int64_t now_ns) {
  if (state == State::running && state_ != State::silent) good_ns_ = now_ns;
  state_ = state;
  since_ns_ = now_ns;
}

Action SupervisorPlan::start(std::int64_t now_ns) {
  enter(State::starting, now_ns);
  told_firmly_ = false;
  ++starts_;
  return Action::start;
}

Action SupervisorPlan::gone(std::int64_t now_ns) {
  const bool was_good = (state_ == State::running || state_ == State::silent) &&
                        now_ns - good_ns_ >= settings_.good_after_ns;
  failures_ = was_good ? 0 : failures_;
  enter(State::waiting, now_ns);
  if (!settings_.starts) {
    notes_.emplace_back("the service has ended; waiting until it is started");
    return Action::none;
  }
  std::int64_t wait = settings_.least_wait_ns;
  for (std::uint32_t i = 0; i < failures_ && wait < settings_.most_wait_ns; ++i) wait *= 2;
  wait = std::min(wait, settings_.most_wait_ns);
  // A quarter less or more: many hosts that lost the same thing do not come back at once.
  wait +=
      static_cast<std::int64_t>(random_.below(static_cast<std::uint64_t>(wait / 2) + 1)) - wait / 4;
  ++failures_;
  due_ns_ = now_ns + wait;
  notes_.push_back(fmt::format("the service has ended; started again in {:.2f} s (try {})",
                               static_cast<double>(wait) / 1e9, failures_));
  return Action::none;
}

void SupervisorPlan::failed(std::int64_t now_ns) { gone(now_ns); }

bool SupervisorPlan::replace(std::int64_t now_ns) {
  if (!settings_.starts || state_ != State::running) return false;
  notes_.emplace_back("the service is told to end, for a restart");
  enter(State::ending, now_ns);
  told_politely_ = false;
  told_firmly_ = false;
  return true;
}

Action SupervisorPlan::step(std::int64_t now_ns, const ServiceFacts& facts) {
  if (state_ == State::ending) {
    if (!facts.alive && !facts.connected) {
      notes_.emplace_back("the service has ended as told");
      return start(now_ns);
    }
    if (!told_politely_) {
      told_politely_ = true;
      return Action::end_politely;
    }
    if (now_ns - since_ns_ >= settings_.end_limit_ns && !told_firmly_) {
      told_firmly_ = true;
      notes_.emplace_back("the service does not end; it is killed");
      return Action::end_firmly;
    }
    return Action::none;
  }
  if (facts.connected) {
    if (state_ != State::running) enter(State::running, now_ns);
    return Action::none;
  }
  switch (state_) {
    case State::looking:
      if (!facts.absent) return Action::none;
      if (settings_.starts) return start(now_ns);
      notes_.emplace_back("there is no service; waiting until one is started");
      enter(State::waiting, now_ns);
      return Action::none;
    case State::starting:
      if (!facts.alive) return gone(now_ns);
      if (now_ns - since_ns_ >= settings_.start_limit_ns && !told_firmly_) {
        told_firmly_ = true;
        notes_.emplace_back("the service was started and does not answer; it is killed");
        return Action::end_firmly;
      }
      return Action::none;
    case State::running:
    case State::silent:
      if (!facts.alive) return gone(now_ns);
      if (state_ == State::running) {
        notes_.emplace_back("the service does not answer; it lives, and is left alone");
        enter(State::silent, now_ns);
      }
      return Action::none;
    case State::waiting:
      // Another service may have been started that does not listen yet. That shows when ours cannot
      // listen and ends; then we wait once more.
      return settings_.starts && now_ns >= due_ns_ ? start(now_ns) : Action::none;
    case State::ending:
      break;
  }
  return Action::none;
}

}  // namespace paceline::daemon
