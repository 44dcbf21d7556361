#include "dataplane/base/giving_way.h"

#include <catch2/catch.hpp>

namespace paceline {

TEST_CASE("giving way: worth it as long as the processor is back soon", "[base]") {
  GivingWay way;
  std::int64_t now = 1;
  for (int i = 0; i < 1000; ++i) {
    REQUIRE(way.worthwhile(now));
    way.gave(now, now + 5'000);
    now += 6'000;
  }
}

TEST_CASE("giving way: after a long absence not for a while, longer each time", "[base]") {
  GivingWay way;
  std::int64_t now = 0;
  std::int64_t last = 0;
  for (int i = 0; i < 12; ++i) {
    REQUIRE(way.worthwhile(now));
    way.gave(now, now + 3'000'000);  // another job had its slice
    now += 3'000'000;
    REQUIRE_FALSE(way.worthwhile(now));
    std::int64_t pause = 0;
    while (!way.worthwhile(now + pause)) pause += 1'000'000;
    CHECK(pause >= last);
    CHECK(pause >= GivingWay::kLeastPause);
    CHECK(pause <= GivingWay::kMostPause);
    last = pause;
    now += pause;
  }
  CHECK(last == GivingWay::kMostPause);
}

TEST_CASE("giving way: what was long ago is forgiven", "[base]") {
  GivingWay way;
  way.gave(0, 3'000'000);
  way.gave(30'000'000, 33'000'000);  // twice: 40 ms
  std::int64_t now = 73'000'000;
  REQUIRE(way.worthwhile(now));
  way.gave(now, now + 1'000);  // well at once is no proof
  now += 50'000'000;
  way.gave(now, now + 1'000);  // well for as long as it was avoided is
  way.gave(now, now + 3'000'000);
  CHECK(way.worthwhile(now + 3'000'000 + GivingWay::kLeastPause));
}

}  // namespace paceline
