#include "dataplane/base/containers/event_wheel.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include "dataplane/base/numbers/random.h"

namespace paceline {
namespace {

using Popped = std::pair<std::int64_t, std::uint32_t>;

std::vector<Popped> drain(EventWheel& wheel) {
  std::vector<Popped> out;
  Picos time{};
  std::uint32_t actor = 0;
  while (wheel.pop(time, actor)) out.emplace_back(time.count, actor);
  return out;
}

// The same in both, beyond the ring now and then.
void schedule_some(Random& random, std::int64_t now, EventWheel& wheel, EventWheel& plain) {
  for (std::uint64_t n = random.below(40); n > 0; --n) {
    const auto actor = static_cast<std::uint32_t>(random.below(64));
    const std::uint64_t reach = random.below(8) == 0 ? 1ULL << 36 : 1ULL << 22;
    const Picos at{now + static_cast<std::int64_t>(random.below(reach))};
    wheel.schedule(actor, at);
    plain.schedule(actor, at);
  }
}

TEST_CASE("event wheel orders by time, then by actor, not by insertion") {
  EventWheel wheel(8);
  wheel.schedule(5, {1000});
  wheel.schedule(3, {1000});
  wheel.schedule(7, {999});
  wheel.schedule(4, {1000});
  CHECK(wheel.next_time() == Picos{999});
  CHECK(drain(wheel) == std::vector<Popped>{{999, 7}, {1000, 3}, {1000, 4}, {1000, 5}});
  CHECK(wheel.next_time() == kNever);
}

TEST_CASE("event wheel pops what is before a time, and keeps the rest in order") {
  // Against pop(): whatever the width of slots, entries beyond the ring included.
  for (const unsigned shift : {4U, 14U, 20U}) {
    Random random(7, shift);
    EventWheel wheel(64, shift, 12);
    EventWheel plain(64, shift, 12);
    std::vector<Popped> popped, expected;
    std::int64_t now = 0;
    for (int round = 0; round < 400; ++round) {
      schedule_some(random, now, wheel, plain);
      const Picos end{now + static_cast<std::int64_t>(random.below(1U << 21))};
      Picos time{};
      std::uint32_t actor = 0;
      while (wheel.pop_before(end, time, actor)) popped.emplace_back(time.count, actor);
      while (plain.next_time() < end && plain.pop(time, actor)) {
        expected.emplace_back(time.count, actor);
      }
      REQUIRE(popped == expected);
      std::uint32_t first = 0;
      CHECK(wheel.next_time(first) == plain.next_time());
      if (plain.next_time() != kNever) CHECK(wheel.scheduled_at(first) == plain.next_time());
      now = end.count;
    }
    CHECK(popped.size() > 1000);
  }
}

TEST_CASE(
    "event wheel hands over at once what is before a time, and goes on as if it had been popped") {
  for (const unsigned shift : {4U, 14U, 20U}) {
    Random random(8, shift);
    EventWheel wheel(64, shift, 12);
    EventWheel plain(64, shift, 12);
    std::int64_t now = 0;
    std::size_t taken_in_all = 0;
    for (int round = 0; round < 400; ++round) {
      schedule_some(random, now, wheel, plain);
      const Picos end{now + static_cast<std::int64_t>(random.below(1U << 21))};
      std::vector<Popped> taken, expected;
      Picos time{};
      std::uint32_t actor = 0;
      if (random.below(3) != 0) {
        wheel.take_before(end, [&](std::uint32_t who, Picos at) {
          CHECK(wheel.scheduled_at(who) == kNever);
          taken.emplace_back(at.count, who);
        });
        std::sort(taken.begin(), taken.end());
      } else {
        while (wheel.pop_before(end, time, actor)) taken.emplace_back(time.count, actor);
      }
      while (plain.pop_before(end, time, actor)) expected.emplace_back(time.count, actor);
      REQUIRE(taken == expected);
      taken_in_all += taken.size();
      REQUIRE(wheel.next_time() == plain.next_time());
      now = end.count;
    }
    CHECK(taken_in_all > 1'000);
    CHECK(drain(wheel) == drain(plain));
  }
}

TEST_CASE("event wheel moves and cancels the one entry of an actor") {
  EventWheel wheel(4);
  wheel.schedule(0, {5'000'000});
  wheel.schedule(0, {1'000'000});  // earlier
  wheel.schedule(1, {1'000'000});
  wheel.schedule(1, {9'000'000});  // later
  wheel.schedule(2, {2'000'000});
  wheel.schedule(2, kNever);
  wheel.schedule(3, kNever);
  CHECK(wheel.scheduled_at(1) == Picos{9'000'000});
  CHECK(wheel.scheduled_at(2) == kNever);
  CHECK(drain(wheel) == std::vector<Popped>{{1'000'000, 0}, {9'000'000, 1}});
}

TEST_CASE("event wheel places an entry inside the drained window in order") {
  EventWheel wheel(8, 14);
  for (std::uint32_t actor = 0; actor < 4; ++actor) wheel.schedule(actor, {100 * (actor + 1)});
  Picos time{};
  std::uint32_t actor = 0;
  REQUIRE(wheel.pop(time, actor));
  CHECK(actor == 0);
  wheel.schedule(6, {250});
  wheel.schedule(5, {100});  // now, behind the actor just popped
  wheel.schedule(3, {150});  // was at 400, in the window
  wheel.schedule(3, {400});  // and back: its first copy must not act twice
  CHECK(drain(wheel) == std::vector<Popped>{{100, 5}, {200, 1}, {250, 6}, {300, 2}, {400, 3}});
}

TEST_CASE("event wheel keeps what lies beyond its horizon") {
  EventWheel wheel(8, 0, 12);  // horizon of 4096 ps
  wheel.schedule(0, {10'000'000'000});
  wheel.schedule(1, {5'000});
  wheel.schedule(2, {10'000'000'001});
  wheel.schedule(3, {kNever.count - 1});
  wheel.schedule(4, {20'000});
  wheel.schedule(4, {3});
  CHECK(drain(wheel) ==
        std::vector<Popped>{
            {3, 4}, {5'000, 1}, {10'000'000'000, 0}, {10'000'000'001, 2}, {kNever.count - 1, 3}});
}

TEST_CASE("event wheel peeks far ahead without losing what comes earlier afterwards") {
  EventWheel wheel(3);
  wheel.schedule(0, {50'000'000'000});
  CHECK(wheel.next_time() == Picos{50'000'000'000});
  wheel.schedule(1, {40});
  wheel.schedule(2, {49'000'000'000});
  CHECK(wheel.next_time() == Picos{40});
  CHECK(drain(wheel) == std::vector<Popped>{{40, 1}, {49'000'000'000, 2}, {50'000'000'000, 0}});
}

TEST_CASE("event wheel grows and refuses impossible shapes") {
  EventWheel wheel(1);
  wheel.grow(2);
  wheel.schedule(2, {7});
  CHECK(wheel.actors() == 3);
  CHECK(drain(wheel) == std::vector<Popped>{{7, 2}});
  CHECK_THROWS_AS(EventWheel(1, 41), std::invalid_argument);
  CHECK_THROWS_AS(EventWheel(1, 10, 11), std::invalid_argument);
}

TEST_CASE("event wheel chooses narrower slots for denser events") {
  CHECK(EventWheel::slot_shift_for(0) == 18);
  CHECK(EventWheel::slot_shift_for(15) == 17);
  CHECK(EventWheel::slot_shift_for(700) == 11);
  CHECK(EventWheel::slot_shift_for(40'000) == 5);
  CHECK(EventWheel::slot_shift_for(1e9) == 4);
  for (unsigned shift = 4; shift <= 18; ++shift) {
    const unsigned slots = EventWheel::slots_log2_for(shift);
    CHECK((slots == 16 || shift < 6));
    CHECK((std::int64_t{1} << (shift + slots)) > picos_from_micros(4).count);
  }
}

// Against an ordered set, with every kind of move: nearer, farther, out of the heap, into the
// window, cancelled; actors that reschedule themselves when popped, as links and hosts do.
TEST_CASE("event wheel agrees with an ordered set for any slot width") {
  for (const unsigned shift : {0U, 4U, 8U, 14U, 20U, 30U, 40U}) {
    for (const unsigned slots_log2 : {12U, 16U}) {
      const std::uint64_t seed = 77 + shift * 31 + slots_log2;
      CAPTURE(seed, shift, slots_log2);
      Random random(seed);
      constexpr std::uint32_t kActors = 150;
      EventWheel wheel(kActors, shift, slots_log2);
      std::set<Popped> model;
      std::vector<std::int64_t> at(kActors, kNever.count);
      std::int64_t now = 0;
      const auto schedule = [&](std::uint32_t actor, std::int64_t time) {
        if (at[actor] != kNever.count) model.erase({at[actor], actor});
        at[actor] = time;
        if (time != kNever.count) model.insert({time, actor});
        wheel.schedule(actor, {time});
      };
      const auto random_delay = [&]() -> std::int64_t {
        switch (random.below(6)) {
          case 0:
            return 0;
          case 1:
            return static_cast<std::int64_t>(random.below(100));
          case 2:
            return static_cast<std::int64_t>(random.below(5'000));
          case 3:
            return static_cast<std::int64_t>(random.below(2'000'000));
          case 4:
            return static_cast<std::int64_t>(random.below(200'000'000));
          default:
            return static_cast<std::int64_t>(random.below(200'000'000'000));
        }
      };
      std::uint64_t popped = 0;
      for (int step = 0; step < 30'000; ++step) {
        const std::uint64_t action = random.below(10);
        const auto actor = static_cast<std::uint32_t>(random.below(kActors));
        if (action < 4) {
          schedule(actor, now + random_delay());
        } else if (action == 4) {
          schedule(actor, kNever.count);
        } else if (action == 5 && at[actor] != kNever.count) {
          schedule(actor, at[actor] + random_delay() / 16);  // later
        } else if (action == 6) {
          const Picos expected = model.empty() ? kNever : Picos{model.begin()->first};
          REQUIRE(wheel.next_time() == expected);
        } else {
          Picos time{};
          std::uint32_t who = 0;
          const bool got = wheel.pop(time, who);
          REQUIRE(got == !model.empty());
          if (!got) continue;
          ++popped;
          REQUIRE(Popped(time.count, who) == *model.begin());
          model.erase(model.begin());
          at[who] = kNever.count;
          now = time.count;
          if (random.below(2) == 0) schedule(who, now + random_delay());
        }
        REQUIRE(wheel.scheduled_at(actor).count == at[actor]);
      }
      CHECK(popped > 5'000);
      for (const Popped& rest : model) {
        Picos time{};
        std::uint32_t who = 0;
        REQUIRE(wheel.pop(time, who));
        REQUIRE(Popped(time.count, who) == rest);
      }
      Picos time{};
      std::uint32_t who = 0;
      CHECK_FALSE(wheel.pop(time, who));
    }
  }
}

TEST_CASE("scouting visits what is due soon and changes nothing") {
  constexpr std::uint32_t kActors = 500;
  EventWheel plain(kActors, 8, 12);
  EventWheel scouted(kActors, 8, 12);
  Random random(5);
  const auto schedule = [&](std::uint32_t actor, Picos at) {
    plain.schedule(actor, at);
    scouted.schedule(actor, at);
  };
  for (std::uint32_t a = 0; a < kActors; ++a) {
    schedule(a, Picos{static_cast<std::int64_t>(random.below(3'000'000))});
  }
  std::vector<bool> seen(kActors, false);
  int ahead = 0, popped_seen = 0;
  for (int i = 0; i < 20'000; ++i) {
    while (ahead < 24 && scouted.scout([&](std::uint32_t actor, Picos) {
      seen[actor] = true;
      ++ahead;
    })) {
    }
    Picos t1{}, t2{};
    std::uint32_t a1 = 0, a2 = 0;
    REQUIRE(plain.pop(t1, a1));
    REQUIRE(scouted.pop(t2, a2));
    REQUIRE(t1 == t2);
    REQUIRE(a1 == a2);
    if (seen[a1]) {
      --ahead;
      ++popped_seen;
    }
    seen[a1] = false;
    // Far enough not to fall behind the scout, and within the ring as a rule.
    schedule(a1, t1 + Picos{300'000 + static_cast<std::int64_t>(random.below(600'000))});
  }
  CHECK(popped_seen > 19'000);
}

}  // namespace
}  // namespace paceline
