#include <catch2/catch.hpp>

#include "dataplane/driver/clock/tsc_clock.h"

namespace paceline {
namespace {

// A reading of the clock lies between two readings of the system's, however long the thread was
// away in between: nothing here depends on how fast the machine is.
void agrees_with_system(const TscClock& clock) {
  // Both clocks' zero points are known to within the bracket around this pair.
  const Nanos before = raw_monotonic_time();
  const Picos origin = clock.now();
  const Nanos after = raw_monotonic_time();
  Nanos last = after;
  while ((last - after).count < 50'000'000) {
    const Nanos low = raw_monotonic_time();
    const Picos mid = clock.now();
    last = raw_monotonic_time();
    const std::int64_t elapsed_ns = (mid - origin).count / 1000;
    const std::int64_t least = (low - after).count;
    const std::int64_t most = (last - before).count;
    // 50 ppm of calibration error (measured: below 5), and the grain of both clocks.
    const std::int64_t slack = most / 20'000 + 200;
    REQUIRE(elapsed_ns >= least - slack);
    REQUIRE(elapsed_ns <= most + slack);
  }
}

TEST_CASE("the calibrated clock runs like CLOCK_MONOTONIC_RAW", "[rt]") {
  const TscClock clock = TscClock::calibrated();
  INFO("frequency " << clock.frequency());
  CHECK(clock.now().count >= 0);
  agrees_with_system(clock);
}

TEST_CASE("without a usable counter the system clock stands in", "[rt]") {
  const TscClock clock = TscClock::calibrated({1000}, false);
  CHECK(clock.source() == TscClock::Source::system);
  CHECK(clock.frequency() == Approx(1e9));
  agrees_with_system(clock);
}

TEST_CASE("readings never go back on one thread", "[rt]") {
  const TscClock clock = TscClock::calibrated({2'000'000});
  Picos last = clock.now();
  for (int i = 0; i < 200'000; ++i) {
    const Picos next = clock.now();
    REQUIRE(next >= last);
    last = next;
  }
}

}  // namespace
}  // namespace paceline
