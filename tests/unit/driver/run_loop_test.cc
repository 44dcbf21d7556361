// The loop of a thread, with a clock and a body that follow a script.
#include "dataplane/driver/loop/run_loop.h"

#include <catch2/catch.hpp>
#include <functional>
#include <string>
#include <vector>

namespace paceline {

namespace {

constexpr Picos us(std::int64_t count) { return picos_from_micros(count); }

// Moves on by `step` with every reading.
struct SteppingClock {
  Picos step;
  Picos time{0};
  Picos now() { return time = time + step; }
};

struct ScriptedBody : LoopBody {
  bool on_turn(Picos now, Picos gap) {
    turns.push_back(now);
    gaps.push_back(gap);
    if (turns.size() == last_turn) stop = true;
    return work && work(turns.size());
  }
  Picos next_deadline(Picos) const { return deadline; }
  bool may_sleep() const { return sleeps_at_all; }
  void announce_sleep() { said += "announce "; }
  void sleep(Picos time) {
    said += "sleep ";
    slept.push_back(time);
    clock.time = clock.time + time + late;
  }
  void awake() { said += "awake "; }

  SteppingClock clock{us(1)};
  std::atomic<bool> stop{false};
  std::size_t last_turn = 0;
  std::function<bool(std::size_t)> work;  // by the number of the turn, from 1 on
  Picos deadline = kNever;
  Picos late{0};  // of the end of a sleep
  bool sleeps_at_all = true;
  std::vector<Picos> turns, gaps, slept;
  std::string said;
};

constexpr IdleSettings kSleeper{
    .how = Idle::sleep, .spin_for = us(0), .shortest_sleep = us(50), .longest_sleep = us(200)};

void run(ScriptedBody& body, const IdleSettings& idle, Picos until = kNever) {
  RunLoop loop(idle, {.hiccup = us(100), .stall_limit = us(10'000)});
  loop.run(body.clock, body, body.stop, until);
}

}  // namespace

TEST_CASE("run loop: a sleep is announced, and one more turn comes before it") {
  ScriptedBody body;
  body.last_turn = 3;
  run(body, kSleeper);
  // Turn 1 has no work; turn 2 follows the announcement; turn 3 follows the sleep and ends it all.
  CHECK(body.said == "announce sleep awake announce awake ");
  CHECK(body.slept == std::vector{us(50)});
}

TEST_CASE("run loop: what the turn after the announcement finds is worked off without a sleep") {
  ScriptedBody body;
  body.last_turn = 3;
  body.work = [](std::size_t turn) { return turn >= 2; };
  run(body, kSleeper);
  CHECK(body.said == "announce awake ");
  CHECK(body.slept.empty());
}

TEST_CASE("run loop: a sleep ends at the deadline") {
  ScriptedBody body;
  body.last_turn = 3;
  body.deadline = us(62);
  run(body, kSleeper);
  // The turn after the announcement is at 2 us.
  CHECK(body.turns[1] == us(2));
  CHECK(body.slept == std::vector{us(50)});
  ScriptedBody sooner;
  sooner.last_turn = 3;
  sooner.deadline = us(51);
  run(sooner, kSleeper);
  CHECK(sooner.slept == std::vector{us(49)});
}

TEST_CASE("run loop: turns hear of stops of the host, not of sleeps") {
  ScriptedBody body;
  body.last_turn = 3;
  run(body, kSleeper);
  CHECK(body.gaps == std::vector(body.turns.size(), us(0)));
  ScriptedBody late;
  late.last_turn = 3;
  late.late = us(300);
  run(late, kSleeper);
  REQUIRE(late.gaps.size() >= 3);
  CHECK(late.gaps[2] > us(300));
  CHECK(late.gaps[2] < us(350));  // the sleep of 50 us is none of it
}

TEST_CASE("run loop: nobody sleeps who awaits an answer") {
  ScriptedBody body;
  body.last_turn = 100;
  body.sleeps_at_all = false;
  run(body, kSleeper);
  CHECK(body.said.empty());
}

TEST_CASE("run loop: it ends by the clock, and time does not go back") {
  ScriptedBody body;
  run(body, {.how = Idle::spin}, us(10));
  CHECK(body.turns.size() == 10);
  CHECK(body.turns.back() == us(10));
  ScriptedBody back;
  back.last_turn = 2;
  back.clock = {.step = us(-1), .time = us(10)};
  run(back, {.how = Idle::spin});
  CHECK(back.turns == std::vector{us(9), us(9)});
}

}  // namespace paceline
