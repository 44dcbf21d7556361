// When the service is started, started again and left alone, without a process or a clock.
#include "control/daemon/process/supervisor_plan.h"

#include <catch2/catch.hpp>

namespace paceline::daemon {

namespace {

using State = SupervisorPlan::State;
using Action = SupervisorPlan::Action;

constexpr std::int64_t kSec = 1'000'000'000;
constexpr ServiceFacts kNobody{false, true, false};
constexpr ServiceFacts kComing{false, true, true};
constexpr ServiceFacts kThere{true, false, true};
constexpr ServiceFacts kMute{false, false, true};

SupervisorSettings starting() {
  SupervisorSettings settings;
  settings.starts = true;
  return settings;
}

// Steps from `now` until something is to be done; the time of it.
std::int64_t next_action(SupervisorPlan& plan, std::int64_t now, const ServiceFacts& facts,
                         Action wanted) {
  for (std::int64_t t = now; t < now + 100 * kSec; t += kSec / 100) {
    const Action action = plan.step(t, facts);
    if (action == Action::none) continue;
    CHECK(action == wanted);
    return t;
  }
  FAIL("nothing was done");
  return 0;
}

}  // namespace

TEST_CASE("one that runs already is attached to and not started", "[supervisor]") {
  SupervisorPlan plan(starting());
  CHECK(plan.step(0, {false, false, false}) == Action::none);
  CHECK(plan.step(kSec, kThere) == Action::none);
  CHECK(plan.state() == State::running);
  CHECK(plan.starts() == 0);
}

TEST_CASE("none is started where there is only a socket to attach to", "[supervisor]") {
  SupervisorPlan plan{SupervisorSettings{}};
  for (std::int64_t t = 0; t < 100; ++t) CHECK(plan.step(t * kSec, kNobody) == Action::none);
  CHECK(plan.state() == State::waiting);
  CHECK(plan.step(100 * kSec, kThere) == Action::none);
  CHECK(plan.state() == State::running);
  CHECK_FALSE(plan.replace(100 * kSec));
  CHECK(plan.step(101 * kSec, kNobody) == Action::none);
  CHECK(plan.state() == State::waiting);
}

TEST_CASE("waits grow to their most, with jitter, and it never gives up", "[supervisor]") {
  SupervisorSettings settings = starting();
  std::int64_t sum_of_seeds = 0;
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    settings.seed = seed;
    SupervisorPlan plan(settings);
    CHECK(plan.step(0, kNobody) == Action::start);
    std::int64_t now = 0;
    std::int64_t nominal = settings.least_wait_ns;
    for (int i = 0; i < 40; ++i) {
      CHECK(plan.step(now, kNobody) == Action::none);  // it has ended
      CHECK(plan.state() == State::waiting);
      const std::int64_t wait = plan.due_ns() - now;
      CHECK(wait >= nominal * 3 / 4 - 1);
      CHECK(wait <= nominal * 5 / 4 + 1);
      sum_of_seeds += i == 0 ? wait : 0;
      nominal = std::min(nominal * 2, settings.most_wait_ns);
      now = next_action(plan, now, kNobody, Action::start);
    }
    CHECK(plan.failures() == 40);
    CHECK_FALSE(plan.take_notes().empty());
  }
  CHECK(sum_of_seeds != 3 * settings.least_wait_ns);
}

TEST_CASE("having run for a while it starts with the least wait again", "[supervisor]") {
  SupervisorPlan plan(starting());
  std::int64_t now = 0;
  plan.step(now, kNobody);
  for (int i = 0; i < 6; ++i) {
    plan.step(now, kNobody);
    now = next_action(plan, now, kNobody, Action::start);
  }
  plan.step(now, kThere);
  plan.step(now + 5 * kSec, kNobody);  // not long enough
  CHECK(plan.failures() == 7);
  now = next_action(plan, now + 5 * kSec, kNobody, Action::start);
  plan.step(now, kThere);
  plan.step(now + 31 * kSec, kNobody);
  CHECK(plan.failures() == 1);
  CHECK(plan.due_ns() - (now + 31 * kSec) < kSec);
}

TEST_CASE("one that lives and is silent is left alone", "[supervisor]") {
  SupervisorPlan plan(starting());
  plan.step(0, kThere);
  for (std::int64_t t = 1; t < 1000; ++t) CHECK(plan.step(t * kSec, kMute) == Action::none);
  CHECK(plan.state() == State::silent);
  CHECK(plan.take_notes().size() == 1);
  plan.step(1000 * kSec, kThere);
  CHECK(plan.state() == State::running);
  // It has been good all the time.
  plan.step(1001 * kSec, kNobody);
  CHECK(plan.failures() == 1);
}

TEST_CASE("one that was started and never answers is killed, and started again", "[supervisor]") {
  SupervisorPlan plan(starting());
  CHECK(plan.step(0, kNobody) == Action::start);
  const std::int64_t killed = next_action(plan, kSec, kComing, Action::end_firmly);
  CHECK(killed >= SupervisorSettings{}.start_limit_ns);
  CHECK(plan.step(killed + kSec, kComing) == Action::none);
  CHECK(plan.step(killed + 2 * kSec, kNobody) == Action::none);
  CHECK(plan.state() == State::waiting);
  next_action(plan, killed + 2 * kSec, kNobody, Action::start);
}

TEST_CASE("an upgrade ends the one that runs, firmly if need be, and starts another",
          "[supervisor]") {
  for (const bool stubborn : {false, true}) {
    SupervisorPlan plan(starting());
    plan.step(0, kThere);
    REQUIRE(plan.replace(kSec));
    CHECK(plan.step(kSec, kThere) == Action::end_politely);
    CHECK(plan.step(2 * kSec, kThere) == Action::none);
    CHECK_FALSE(plan.replace(2 * kSec));
    std::int64_t now = 3 * kSec;
    if (stubborn) {
      now = next_action(plan, now, kMute, Action::end_firmly);
      CHECK(now >= kSec + SupervisorSettings{}.end_limit_ns);
      CHECK(plan.step(now + kSec, kMute) == Action::none);
    }
    CHECK(plan.step(now + 2 * kSec, kNobody) == Action::start);
    plan.step(now + 3 * kSec, kThere);
    CHECK(plan.state() == State::running);
    CHECK(plan.failures() == 0);
  }
}

TEST_CASE("a program that cannot be started is tried again, later and later", "[supervisor]") {
  SupervisorPlan plan(starting());
  CHECK(plan.step(0, kNobody) == Action::start);
  plan.failed(0);
  CHECK(plan.state() == State::waiting);
  CHECK(plan.failures() == 1);
  next_action(plan, 0, kNobody, Action::start);
}

}  // namespace paceline::daemon
