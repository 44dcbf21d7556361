#include "dataplane/base/adaptive_yield.h"

#include <catch2/catch.hpp>

namespace paceline {

TEST_CASE("adaptive yield: worth it as long as the processor is back soon", "[base]") {
  AdaptiveYield yield;
  std::int64_t now = 1;
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(yield.worthwhile(now));
    yield.yielded(now, now + 5'000);
    now += 6'000;
  }
}

TEST_CASE("adaptive yield: after a long absence not for a while, longer each time", "[base]") {
  AdaptiveYield yield;
  std::int64_t now = 0;
  std::int64_t last = 0;
  for (int i = 0; i < 12; ++i) {
    REQUIRE(yield.worthwhile(now));
    yield.yielded(now, now + 3'000'000);  // another job had its slice
    now += 3'000'000;
    REQUIRE_FALSE(yield.worthwhile(now));
    std::int64_t pause = 0;
    while (!yield.worthwhile(now + pause)) pause += 1'000'000;
    CHECK(pause >= last);
    CHECK(pause >= AdaptiveYield::kLeastPause);
    CHECK(pause <= AdaptiveYield::kMostPause);
    last = pause;
    now += pause;
  }
  CHECK(last == AdaptiveYield::kMostPause);
}

TEST_CASE("adaptive yield: what was long ago is forgiven", "[base]") {
  AdaptiveYield yield;
  yield.yielded(0, 3'000'000);
  yield.yielded(30'000'000, 33'000'000);  // twice: 40 ms
  std::int64_t now = 73'000'000;
  REQUIRE(yield.worthwhile(now));
  yield.yielded(now, now + 1'000);  // well at once is not a proof
  now += 50'000'000;
  yield.yielded(now, now + 1'000);  // well for as long as it was avoided is
  yield.yielded(now, now + 3'000'000);
  CHECK(yield.worthwhile(now + 3'000'000 + AdaptiveYield::kLeastPause));
}

}  // namespace paceline
