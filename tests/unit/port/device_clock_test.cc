// A device's clock against the engine's: any frequency, drift, jumps, ticks that go round, stamps
// that cannot be.
#include "dataplane/port/device_clock.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <random>
#include <vector>

namespace paceline::test {
namespace {

// The true relation of the two clocks. The rate may change; ticks never go back unless they are
// set.
class World {
 public:
  World(double hz, std::uint64_t first_ticks) : picos_per_tick_(1e12 / hz), ticks_(first_ticks) {}

  Picos now() const { return now_; }
  void go(Picos time) {
    now_ += time;
    part_ += static_cast<double>(time.count) / picos_per_tick_;
    const double whole = std::floor(part_);
    ticks_ += static_cast<std::uint64_t>(whole);
    part_ -= whole;
  }
  std::uint64_t ticks() const { return ticks_; }
  void set_rate(double hz) { picos_per_tick_ = 1e12 / hz; }
  void jump(std::uint64_t ticks) { ticks_ += ticks; }

  // Reads the device's clock, which takes `width`; where in it is up to `at`, 0 to 1.
  ClockPair read(Picos width, double at) {
    ClockPair pair;
    pair.before = now_;
    const Picos until{static_cast<std::int64_t>(static_cast<double>(width.count) * at)};
    go(until);
    pair.ticks = ticks_;
    go(width - until);
    pair.after = now_;
    return pair;
  }

 private:
  double picos_per_tick_;
  std::uint64_t ticks_;
  double part_ = 0;
  Picos now_ = picos_from_micros(1'000);
};

double unit(std::mt19937_64& random) {
  return std::uniform_real_distribution<double>(0, 1)(random);
}

// So many packets, each found `late` after it came at most; pairs are taken as the clock wants
// them.
struct Walk {
  double hz = 1e9;
  std::uint64_t first_ticks = 0;
  double drift_ppm = 0;  // of the rate, from packet to packet within +- this
  Picos width = picos_from_nanos(800);
  Picos gap = picos_from_micros(20);
  unsigned packets = 50'000;
  std::uint64_t seed = 1;
};
struct Walked {
  Picos worst{0};
  DeviceClockCounters counters{};
};

Walked walk(const Walk& w) {
  std::mt19937_64 random(w.seed);
  World world(w.hz, w.first_ticks);
  DeviceClock clock;
  Walked result;
  Picos emptied = world.now();
  Picos last{0};
  for (unsigned i = 0; i < w.packets; ++i) {
    if (w.drift_ppm != 0 && i % 500 == 0) {
      world.set_rate(w.hz * (1 + w.drift_ppm * 1e-6 * (2 * unit(random) - 1)));
    }
    world.go(
        Picos{1 + static_cast<std::int64_t>(unit(random) * 2 * static_cast<double>(w.gap.count))});
    const Picos came = world.now();
    const std::uint64_t stamp = world.ticks();
    world.go(Picos{static_cast<std::int64_t>(unit(random) * 30e6)});  // up to 30 us
    const Picos found = world.now();
    if (clock.wants_pair(found)) {
      // Now and then the thread is taken away in between.
      const bool long_one = random() % 10 == 0;
      clock.pair(world.read(long_one ? w.width * 1000 : w.width, unit(random)));
    }
    const auto told = clock.time_of(stamp, emptied, found);
    if (clock.ready()) {
      REQUIRE(told.has_value());
      REQUIRE(*told <= found);
      REQUIRE(*told >= last);
      last = *told;
      const Picos error = *told < came ? came - *told : *told - came;
      result.worst = later(result.worst, error);
    } else {
      REQUIRE(!told.has_value());
    }
    emptied = found;
  }
  result.counters = clock.counters();
  return result;
}

TEST_CASE("device clock: times are right to the width of a reading, at any frequency", "[port]") {
  for (const double hz : {1e9, 78.125e6, 10e6, 2.6e9, 1e6}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      CAPTURE(hz, seed);
      Walk w;
      w.hz = hz;
      w.seed = seed;
      const Walked result = walk(w);
      // Half a width of the last pair; the rate, off by a width over 8 ms at first, used for up to
      // 10 ms and 30 us; a tick; and a nanosecond for roundings.
      const Picos allowed = w.width / 2 + w.width * 10'030 / 8'000 +
                            Picos{static_cast<std::int64_t>(1e12 / hz)} + picos_from_nanos(1);
      CHECK(result.worst.count <= allowed.count);
      CHECK(result.counters.jumps == 0);
      CHECK(result.counters.too_early == 0);
      CHECK(result.counters.too_late == 0);
      CHECK(result.counters.stamps > 49'000);
      CHECK(result.counters.pairs > 100);
      CHECK(result.counters.pairs_refused > 0);
    }
  }
}

TEST_CASE("device clock: drift is followed", "[port]") {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    CAPTURE(seed);
    Walk w;
    w.drift_ppm = 100;
    w.seed = seed;
    const Walked result = walk(w);
    // As above; and the rate of the last pairs may differ by 200 ppm from that since the latest.
    const Picos allowed = w.width / 2 + w.width * 10'030 / 8'000 +
                          picos_from_nanos(10'030 * 200 / 1'000) + picos_from_nanos(2);
    CHECK(result.worst.count <= allowed.count);
    CHECK(result.counters.jumps == 0);
    CHECK(result.counters.too_early + result.counters.too_late == 0);
  }
}

TEST_CASE("device clock: ticks may go round", "[port]") {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    CAPTURE(seed);
    Walk w;
    w.seed = seed;
    w.first_ticks = ~std::uint64_t{0} - 500'000'000;  // half a second before
    const Walked result = walk(w);
    CHECK(result.counters.jumps == 0);
    CHECK(result.counters.stamps > 49'000);
    CHECK(result.worst < picos_from_micros(2));
  }
}

// After which pairs are over 8 ms again.
void make_ready(DeviceClock& clock, World& world) {
  while (!clock.ready()) {
    world.go(picos_from_micros(1'000));
    clock.pair(world.read(picos_from_nanos(500), 0.5));
    REQUIRE(world.now() < picos_from_micros(1'000'000));
  }
}

TEST_CASE("device clock: one that is set begins anew, and lies to nobody meanwhile", "[port]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    World world(1e9, random());
    DeviceClock clock;
    make_ready(clock, world);
    // Sooner or later: with the pairs anywhere in their ring.
    for (std::uint64_t more = 0; more < 2 * seed; ++more) {
      world.go(picos_from_micros(1'000));
      clock.pair(world.read(picos_from_nanos(500), 0.5));
    }
    // By a millisecond to a day, forwards or back.
    const auto by = static_cast<std::uint64_t>(std::pow(10.0, 6 + 8 * unit(random)));
    world.jump(random() % 2 == 0 ? by : ~by + 1);
    for (unsigned i = 0; i < 2'000; ++i) {
      world.go(picos_from_micros(100));
      const Picos came = world.now();
      const std::uint64_t stamp = world.ticks();
      world.go(picos_from_micros(5));
      const Picos found = world.now();
      if (clock.wants_pair(found)) clock.pair(world.read(picos_from_nanos(500), unit(random)));
      const auto told = clock.time_of(stamp, came - picos_from_micros(50), found);
      if (!told) continue;
      const Picos error = *told < came ? came - *told : *told - came;
      REQUIRE(error < picos_from_micros(2));
    }
    CHECK(clock.ready());
    CHECK(clock.counters().jumps == 1);
    CHECK(clock.counters().stamps > 1'500);
  }
}

TEST_CASE("device clock: set while it is being learned", "[port]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    std::mt19937_64 random(seed);
    World world(1e9, 0);
    DeviceClock clock;
    for (unsigned i = 0; i < 40; ++i) {
      world.go(picos_from_micros(1'000));
      if (i == 4) world.jump(100'000 + random() % 1'000'000'000);
      clock.pair(world.read(picos_from_nanos(500), unit(random)));
      if (!clock.ready()) continue;
      CHECK(clock.frequency() == Approx(1e9).epsilon(2e-4));
    }
    CHECK(clock.ready());
    CHECK(clock.counters().jumps == 1);
  }
}

TEST_CASE("device clock: what cannot be is refused", "[port]") {
  World world(1e9, 1'000'000);
  DeviceClock clock;
  CHECK(!clock.time_of(5, Picos{0}, world.now()));
  CHECK(clock.counters().not_ready == 1);
  CHECK(clock.frequency() == 0);
  make_ready(clock, world);
  CHECK(clock.frequency() == Approx(1e9).epsilon(1e-3));
  const Picos now = world.now();
  const Picos emptied = now - picos_from_micros(10);
  // Later than the poll that found it, by more than the clocks may differ.
  CHECK(!clock.time_of(world.ticks() + 10'000, emptied, now));
  CHECK(clock.counters().too_late == 1);
  // By less: at the poll.
  CHECK(clock.time_of(world.ticks() + 100, emptied, now) == now);
  // Long before a poll that left nothing behind.
  CHECK(!clock.time_of(world.ticks() - 200'000, emptied, now));
  CHECK(clock.counters().too_early == 1);
  // Not so long: the device had it.
  const auto old = clock.time_of(world.ticks() - 50'000, emptied, now);
  REQUIRE(old.has_value());
  CHECK(*old < emptied);
  // Out of all measure, either way.
  for (unsigned shift = 40; shift < 64; ++shift) {
    CHECK(!clock.time_of(world.ticks() + (std::uint64_t{1} << shift), emptied, now));
    CHECK(!clock.time_of(world.ticks() - (std::uint64_t{1} << shift), emptied, now));
  }
  // One after the other: it is the clock.
  CHECK(clock.ready());
  for (unsigned i = 0; i < 64; ++i) clock.time_of(world.ticks() + 50'000'000, emptied, now);
  CHECK(!clock.ready());
  CHECK(clock.counters().jumps == 1);
  CHECK(clock.wants_pair(now));
}

TEST_CASE("device clock: one that stands still, or runs out of all measure, is never ready",
          "[port]") {
  for (const double hz : {0.001, 1e3, 1e13}) {
    CAPTURE(hz);
    World world(hz, 7);
    DeviceClock clock;
    for (unsigned i = 0; i < 1'000; ++i) {
      world.go(picos_from_micros(1'000));
      clock.pair(world.read(picos_from_nanos(500), 0.5));
      REQUIRE(!clock.ready());
    }
    CHECK(clock.counters().jumps > 0);
  }
}

}  // namespace
}  // namespace paceline::test
