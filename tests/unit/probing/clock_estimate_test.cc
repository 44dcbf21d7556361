// Offset and drift of a clock from probes through queues, with many seeds.
#include "dataplane/probing/clock_estimate.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstdlib>
#include <vector>

#include "dataplane/base/numbers/distributions.h"
#include "dataplane/probing/host_clock.h"

namespace paceline::probing {
namespace {

// Two hosts, the second of which has a clock that is off, and queues both ways.
struct Pair {
  HostClock theirs;
  double wire_ns = 1500;
  double queue_there = 20'000;  // means, when there is a queue
  double queue_back = 1'000;
  double empty = 0.2;  // share of the probes that meet none, each way
  Random random;
  Picos now{0};

  explicit Pair(std::uint64_t seed) : random(seed, 1) {}

  Picos delay(double queue) {
    const double waits = random.uniform() < empty ? 0.0 : exponential(random, queue);
    return Picos{static_cast<std::int64_t>((wire_ns + waits) * 1e3)};
  }
  ProbeTimes probe() {
    const Picos received = now + delay(queue_there);
    const Picos answered = received + Picos{static_cast<std::int64_t>(random.below(3'000'000))};
    const Picos returned = answered + delay(queue_back);
    return {to_nanos(now), theirs.at(received), theirs.at(answered), to_nanos(returned)};
  }
  void pass(Picos time) { now = now + time; }
  double truth(Picos at) const { return static_cast<double>((theirs.at(at) - to_nanos(at)).count); }
};

Pair random_pair(std::uint64_t seed) {
  Pair pair(seed);
  Random draws(seed, 2);
  pair.theirs.at_zero = Nanos{static_cast<std::int64_t>(draws.below(2'000'001)) - 1'000'000};
  pair.theirs.drift_ppb = static_cast<std::int64_t>(draws.below(100'001)) - 50'000;
  return pair;
}

double error_of(const ClockEstimate& estimate, const Pair& pair) {
  return estimate.reading()->offset_at(to_nanos(pair.now)) - pair.truth(pair.now);
}

}  // namespace

TEST_CASE("a clock shows its faults, and what is left of them") {
  HostClock clock;
  clock.at_zero = Nanos{5};
  constexpr Picos kSecond = picos_from_micros(1'000'000);
  clock.changes = {{.at = kSecond, .set_by = Nanos{700}, .right_at = kSecond * 3},
                   {.at = kSecond, .drift_ppb = 2'000, .steady_at = kSecond * 2}};
  const auto beyond = [&](Picos at) { return (clock.at(at) - to_nanos(at)).count; };
  CHECK(beyond(Picos{0}) == 5);
  CHECK(beyond(kSecond) == 705);
  CHECK(beyond(kSecond * 2) == 2705);
  CHECK(beyond(kSecond * 4) == 2005);  // set right; it ran away before
}

TEST_CASE(
    "a clock that is off by 1 ms and 50 ppm is known within 200 ns through queues that differ") {
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    Pair pair = random_pair(seed);
    // In the second half no probe meets queues that are all empty.
    if (seed > 25) {
      pair.empty = 0;
      pair.queue_there = 4'000;
      pair.queue_back = 2'000;
    }
    ClockEstimate estimate;
    std::vector<double> errors;
    for (int i = 0; i < 2000; ++i) {
      estimate.add(pair.probe());
      pair.pass(picos_from_micros(10'000));
      if (i >= 400) errors.push_back(std::abs(error_of(estimate, pair)));
    }
    std::sort(errors.begin(), errors.end());
    CAPTURE(seed, pair.theirs.at_zero.count, pair.theirs.drift_ppb, errors.back());
    CHECK(errors[errors.size() * 99 / 100] <= 200);
    const ClockReading reading = *estimate.reading();
    CHECK(std::abs(reading.drift * 1e9 - static_cast<double>(pair.theirs.drift_ppb)) <= 200);
    CHECK(reading.restarts == 0);
    CHECK(reading.least_one_way >= pair.wire_ns - 2);
  }
}

TEST_CASE("one-way delays are those of the wire and its queue") {
  Pair pair = random_pair(7);
  ClockEstimate estimate;
  for (int i = 0; i < 1000; ++i) {
    estimate.add(pair.probe());
    pair.pass(picos_from_micros(1'000));
  }
  const Picos received = pair.now + picos_from_micros(9);
  const Picos returned = received + picos_from_micros(4);
  const ProbeTimes times{to_nanos(pair.now), pair.theirs.at(received), pair.theirs.at(received),
                         to_nanos(returned)};
  const ClockReading reading = *estimate.reading();
  CHECK(std::abs(reading.one_way_there(times) - 9000) <= 200);
  CHECK(std::abs(reading.one_way_back(times) - 4000) <= 200);
}

TEST_CASE("a clock that is set is noticed, and known again") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair = random_pair(seed);
    ClockEstimate estimate;
    const std::int64_t jump = seed % 2 == 0 ? 1'000'000 : -20'000;
    for (int i = 0; i < 500; ++i) {
      estimate.add(pair.probe());
      pair.pass(picos_from_micros(10'000));
    }
    CHECK(estimate.restarts() == 0);
    pair.theirs.set_at = pair.now;
    pair.theirs.set_by = Nanos{jump};
    for (int i = 0; i < 400; ++i) {
      estimate.add(pair.probe());
      pair.pass(picos_from_micros(10'000));
    }
    CAPTURE(seed, jump);
    CHECK(estimate.restarts() == 1);
    CHECK(std::abs(error_of(estimate, pair)) <= 200);
  }
}

TEST_CASE("a queue that comes and goes is no clock that is set") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    Pair pair = random_pair(seed);
    ClockEstimate estimate;
    for (int i = 0; i < 3000; ++i) {
      const bool busy = i / 300 % 2 == 1;
      pair.queue_there = busy ? 150'000 : 500;
      pair.empty = busy ? 0 : 0.2;
      estimate.add(pair.probe());
      pair.pass(picos_from_micros(1'000));
    }
    CAPTURE(seed);
    CHECK(estimate.restarts() == 0);
    CHECK(std::abs(error_of(estimate, pair)) <= 500);
  }
}

TEST_CASE("one probe says that clocks differ by what it saw, within half of its round trip") {
  ClockEstimate estimate;
  CHECK_FALSE(estimate.reading());
  estimate.add({Nanos{1000}, Nanos{901'500}, Nanos{901'600}, Nanos{2'200}});
  const ClockReading reading = *estimate.reading();
  CHECK(reading.offset_at(Nanos{1000}) == 899'950);
  CHECK(reading.least_one_way == 550);
  CHECK(reading.drift == 0);
}

// What the other end writes is not believed.
TEST_CASE("times that no clock shows do no harm") {
  Random random(11, 3);
  ClockEstimate estimate;
  for (int i = 0; i < 20'000; ++i) {
    const auto any = [&] { return Nanos{static_cast<std::int64_t>(random.next() >> (i % 64))}; };
    estimate.add({Nanos{i * 1000}, any(), any(), Nanos{i * 1000 + 500}});
    if (const auto reading = estimate.reading()) {
      REQUIRE(std::isfinite(reading->offset_at(Nanos{i * 1000})));
      REQUIRE(std::abs(reading->drift) <= ClockEstimate::kMostDrift);
    }
  }
}

}  // namespace paceline::probing
