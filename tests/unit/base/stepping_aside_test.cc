#include "dataplane/base/stepping_aside.h"

#include <catch2/catch.hpp>

namespace paceline {

namespace {

// `waits` waits of `length`, `between` apart. Returns when the last ended.
std::int64_t wait(SteppingAside& aside, std::int64_t now, std::uint32_t waits, std::int64_t length,
                  std::int64_t between) {
  for (std::uint32_t i = 0; i < waits; ++i) {
    aside.waits(now);
    now += length;
    aside.goes_on(now);
    now += between;
  }
  return now;
}

}  // namespace

TEST_CASE("stepping aside: many waits in a row, each soon after the last", "[base]") {
  SteppingAside aside;
  std::int64_t now = wait(aside, 1'000'000, SteppingAside::kWaits, 5'000, 1'000);
  CHECK_FALSE(aside.worthwhile(now));  // the first followed nothing
  now = wait(aside, now, 1, 5'000, 1'000);
  CHECK(aside.worthwhile(now));
}

TEST_CASE("stepping aside: not for who does something else between waits", "[base]") {
  SteppingAside aside;
  const std::int64_t now = wait(aside, 0, 1000, 5'000, SteppingAside::kClose);
  CHECK_FALSE(aside.worthwhile(now));
}

TEST_CASE("stepping aside: once in a while, whatever it gave", "[base]") {
  SteppingAside aside;
  std::int64_t now = wait(aside, 0, 2 * SteppingAside::kWaits, 5'000, 1'000);
  REQUIRE(aside.worthwhile(now));
  aside.stepped(now);
  const std::int64_t until = now + SteppingAside::kPause;
  while (now < until) {
    CHECK_FALSE(aside.worthwhile(now));
    now = wait(aside, now, 1, 5'000, 1'000);
  }
  now = wait(aside, now, SteppingAside::kWaits, 5'000, 1'000);
  CHECK(aside.worthwhile(now));
}

}  // namespace paceline
