#include "dataplane/fabric/wire/pause_times.h"

#include <catch2/catch.hpp>
#include <stdexcept>

#include "dataplane/base/numbers/random.h"

namespace paceline::fabric {
namespace {

TEST_CASE("pause times: a pause counts when it ends, and what is in force is asked for") {
  PauseTimes times(2);
  times.begin(1, 3, Picos{100});
  CHECK(times.sum(1) == Picos{0});
  CHECK(times.in_force(1, 1U << 3, Picos{150}) == Picos{50});
  CHECK(times.in_force(0, 0, Picos{150}) == Picos{0});
  CHECK(times.end(1, 3, Picos{160}) == Picos{60});
  CHECK(times.sum(1) == Picos{60});
  CHECK(times.sum(0) == Picos{0});
  CHECK_THROWS_AS(times.sum(2), std::out_of_range);
}

TEST_CASE("pause times: a wait that begins later counts nothing before") {
  PauseTimes times(1);
  times.begin(0, 3, Picos{500});
  CHECK(times.in_force(0, 1U << 3, Picos{400}) == Picos{0});
  CHECK(times.settle(0, 1U << 3, Picos{400}) == Picos{0});
  CHECK(times.end(0, 3, Picos{510}) == Picos{10});
}

TEST_CASE("pause times: settling in between changes no sum") {
  const std::uint64_t seed = GENERATE(range<std::uint64_t>(0, 30));
  INFO("seed " << seed);
  Random random(seed, 3);
  PauseTimes plain(1);
  PauseTimes settled(1);
  unsigned held = 0;
  Picos now{0};
  Picos counted{0};  // what settled has returned
  for (int i = 0; i < 300; ++i) {
    now += Picos{static_cast<std::int64_t>(random.below(1'000))};
    const auto c = static_cast<std::size_t>(random.below(kTrafficClasses));
    if ((held >> c & 1U) == 0) {
      plain.begin(0, c, now);
      settled.begin(0, c, now);
    } else {
      plain.end(0, c, now);
      counted += settled.end(0, c, now);
    }
    held ^= 1U << c;
    if (random.below(3) == 0) counted += settled.settle(0, held, now);
    CHECK(plain.sum(0) + plain.in_force(0, held, now) ==
          settled.sum(0) + settled.in_force(0, held, now));
    CHECK(settled.sum(0) == counted);
  }
  plain.end_all(0, held, now);
  settled.end_all(0, held, now);
  CHECK(plain.sum(0) == settled.sum(0));
}

}  // namespace
}  // namespace paceline::fabric
