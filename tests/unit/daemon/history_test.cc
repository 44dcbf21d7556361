// The ring of a NIC: what was counted is found again, once.
#include "control/daemon/telemetry/history.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "dataplane/base/numbers/random.h"

namespace paceline::daemon {

namespace {

using telemetry::SeriesKind;

constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kSecond = 1000 * kMs;
constexpr std::int64_t kStart = 1'700'000'000 * kSecond;
constexpr std::uint64_t kInstance = 7;
constexpr HistorySpan kSmall{10 * kMs, 2 * kSecond};

std::vector<SeriesInfo> two_series() {
  return {{"sent_bytes", "bytes", SeriesKind::counter}, {"inflight", "bytes", SeriesKind::gauge}};
}

struct Rings {
  History history{two_series(), kSmall};
};

std::uint64_t sum_of(const SeriesPart& part) {
  return std::accumulate(
      part.values.begin(), part.values.end(), std::uint64_t{0},
      [](std::uint64_t sum, const std::optional<std::uint64_t>& v) { return sum + v.value_or(0); });
}

constexpr std::array<std::size_t, 2> kBoth{0, 1};

}  // namespace

TEST_CASE("growth of a counter is kept, and of a gauge the last level and the highest",
          "[history]") {
  Rings rings;
  for (std::uint64_t i = 0; i <= 100; ++i) {
    rings.history.add(kStart + static_cast<std::int64_t>(i) * 10 * kMs, kInstance,
                      std::array<std::uint64_t, 2>{1000 + i * 5, i == 50 ? 900 : i});
  }
  const HistoryPart fine = rings.history.part(kStart, kStart + kSecond, kBoth);
  REQUIRE(fine.slots == 100);
  CHECK(fine.first_unix_ns == kStart);
  CHECK_FALSE(fine.series[0].values[0].has_value());  // what it grew before is not known
  for (std::size_t i = 1; i < 100; ++i) CHECK(fine.series[0].values[i] == 5U);
  CHECK(fine.series[1].highest[50] == 900U);
}

TEST_CASE("whatever the gaps, the ring holds what was counted, once", "[history]") {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    Rings rings;
    std::int64_t now = kStart;
    std::uint64_t total = 0;
    rings.history.add(now, kInstance, std::array<std::uint64_t, 2>{0, 0});
    // Less than the finest ring holds, and no pause that counts as one.
    while (now < kStart + kSecond + 800 * kMs) {
      now += kMs + static_cast<std::int64_t>(random.below(60 * 1'000'000));
      total += random.below(1'000'000);
      rings.history.add(now, kInstance, std::array<std::uint64_t, 2>{total, 1});
    }
    // The slot that is being filled is not told: one more look begins the next.
    rings.history.add(now += 10 * kMs, kInstance, std::array<std::uint64_t, 2>{total, 1});
    CHECK(sum_of(rings.history.part(0, now + kSecond, kBoth).series[0]) == total);
  }
}

TEST_CASE("a pause, and another service, leave slots without values and invent nothing",
          "[history]") {
  Rings rings;
  const auto add = [&](std::int64_t ms, std::uint64_t instance, std::uint64_t value) {
    rings.history.add(kStart + ms * kMs, instance, std::array<std::uint64_t, 2>{value, 0});
  };
  add(0, 1, 100);
  add(10, 1, 110);
  add(1500, 1, 5000);  // more than kLongestPause later
  add(1510, 1, 5001);
  add(1520, 2, 9000);  // another service: it counts from elsewhere
  add(1530, 2, 9002);
  add(1540, 2, 9002);
  const SeriesPart part = rings.history.part(kStart, kStart + 1540 * kMs, kBoth).series[0];
  CHECK(sum_of(part) == 10 + 1 + 2);
  CHECK_FALSE(part.values[75].has_value());
  CHECK_FALSE(part.values[152].has_value());
  CHECK(part.values[153] == 2U);
}

TEST_CASE("a clock that is set back or ahead loses no more than it must", "[history]") {
  Rings rings;
  std::uint64_t value = 0;
  const auto add = [&](std::int64_t ms) {
    rings.history.add(kStart + ms * kMs, 1, std::array<std::uint64_t, 2>{value += 10, 0});
  };
  add(0);
  add(10);
  add(20);
  add(5);  // back: counted where the newest is
  add(30);
  add(40);
  CHECK(sum_of(rings.history.part(kStart, kStart + kSecond, kBoth).series[0]) == 40);
  add(-3'600'000);  // an hour back: the ring begins again
  add(-3'599'990);
  add(-3'599'980);
  const HistoryPart part = rings.history.part(0, kStart + kSecond, kBoth);
  CHECK(sum_of(part.series[0]) == 20);
  CHECK(part.slots <= kSmall.slots());
}

TEST_CASE("a ring holds its span and no more", "[history]") {
  Rings rings;
  for (std::int64_t i = 0; i <= 1000; ++i) {
    rings.history.add(kStart + i * 10 * kMs, 1,
                      std::array<std::uint64_t, 2>{static_cast<std::uint64_t>(i), 0});
  }
  const HistoryPart part = rings.history.part(0, kStart + 100 * kSecond, kBoth);
  CHECK(part.slots == kSmall.slots() - 1);  // and the one that is being filled
  CHECK(part.first_unix_ns == kStart + 8 * kSecond + 10 * kMs);
  CHECK(sum_of(part.series[0]) == part.slots);
}

}  // namespace paceline::daemon
