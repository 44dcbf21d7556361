// Rings hold totals and make their answers when asked: they must be those of the plain way, which
// adds the growth of each look to a slot, and is written down here.
#include <array>
#include <catch2/catch.hpp>
#include <map>
#include <optional>

#include "control/daemon/telemetry/history.h"
#include "dataplane/base/numbers/random.h"

namespace paceline::daemon {

namespace {

using telemetry::SeriesKind;

constexpr std::int64_t kMilli = 1'000'000;
constexpr std::int64_t kOne = 1000 * kMilli;
constexpr std::size_t kColumns = 5;
using Values = std::array<std::uint64_t, kColumns>;
constexpr std::array<std::size_t, kColumns> kAll{0, 1, 2, 3, 4};
constexpr HistorySpan kTiny{10 * kMilli, kOne};

std::vector<SeriesInfo> mixed_series() {
  return {{"a", "1", SeriesKind::counter},
          {"level", "1", SeriesKind::gauge},
          {"b", "1", SeriesKind::counter},
          {"other_level", "1", SeriesKind::gauge},
          {"c", "1", SeriesKind::counter}};
}

bool is_gauge(std::size_t column) { return column == 1 || column == 3; }

class PlainHistory {
 public:
  struct Cell {
    Values values{};
    Values highest{};
  };

  void add(std::int64_t unix_ns, std::uint64_t instance, const Values& values) {
    const bool follows =
        begun_ && instance == instance_ && unix_ns - last_ns_ <= History::kLongestPause;
    Values grown{};
    for (std::size_t i = 0; i < kColumns; ++i) {
      grown[i] = values[i] > before_[i] ? values[i] - before_[i] : 0;
    }
    before_ = values;
    begun_ = true;
    instance_ = instance;
    last_ns_ = unix_ns;
    if (!follows) return;
    put(unix_ns, grown, values);
  }

  // The newest slot is not told.
  std::map<std::int64_t, Cell> told() const {
    std::map<std::int64_t, Cell> out = ring_;
    if (!out.empty()) out.erase(std::prev(out.end()));
    return out;
  }

 private:
  void put(std::int64_t unix_ns, const Values& grown, const Values& values) {
    const auto slots = static_cast<std::int64_t>(kTiny.slots());
    std::int64_t slot = unix_ns / kTiny.slot_ns;
    const std::int64_t newest = ring_.empty() ? -1 : ring_.rbegin()->first;
    if (newest > slot && newest - slot < slots) slot = newest;
    if (newest > slot) ring_.clear();
    ring_.erase(ring_.begin(), ring_.upper_bound(slot - slots));
    Cell& cell = ring_[slot];
    for (std::size_t i = 0; i < kColumns; ++i) {
      cell.values[i] = is_gauge(i) ? values[i] : cell.values[i] + grown[i];
      cell.highest[i] = std::max(cell.highest[i], values[i]);
    }
  }

  std::map<std::int64_t, Cell> ring_;
  bool begun_ = false;
  std::uint64_t instance_ = 0;
  std::int64_t last_ns_ = 0;
  Values before_{};
};

void check_alike(const History& history, const PlainHistory& plain) {
  const std::map<std::int64_t, PlainHistory::Cell> told = plain.told();
  const HistoryPart part = history.part(0, 4'000'000'000 * kOne, kAll);
  std::size_t found = 0;
  for (std::size_t s = 0; s < part.slots; ++s) {
    const auto at = told.find(part.first_unix_ns / kTiny.slot_ns + static_cast<std::int64_t>(s));
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::optional<std::uint64_t>& value = part.series[i].values[s];
      REQUIRE(value.has_value() == (at != told.end()));
      if (!value) continue;
      REQUIRE(*value == at->second.values[i]);
      if (is_gauge(i)) REQUIRE(part.series[i].highest[s] == at->second.highest[i]);
    }
    found += at != told.end() ? 1 : 0;
  }
  REQUIRE(found == told.size());
}

// Steps of a clock: as a rule an interval, now and then many, none, or back.
std::int64_t step(Random& random) {
  switch (random.below(60)) {
    case 0:
      return static_cast<std::int64_t>(random.below(900)) * kMilli;
    case 1:
      return static_cast<std::int64_t>(random.below(30'000)) * kMilli;
    case 2:
      return -static_cast<std::int64_t>(random.below(500)) * kMilli;
    case 3:
      return random.below(8) == 0 ? -static_cast<std::int64_t>(random.below(90'000)) * kMilli : 0;
    default:
      return 9 * kMilli + static_cast<std::int64_t>(random.below(2 * kMilli));
  }
}

}  // namespace

TEST_CASE("whatever happens, rings of totals answer as rings of growth would", "[history]") {
  for (std::uint64_t seed = 1; seed <= 60; ++seed) {
    CAPTURE(seed);
    Random random(seed);
    History history(mixed_series(), kTiny);
    PlainHistory plain;
    std::int64_t now =
        1'700'000'000 * kOne + static_cast<std::int64_t>(random.below(4000)) * kMilli;
    std::uint64_t instance = 1;
    Values values{};
    for (int look = 0; look < 3000; ++look) {
      now += step(random);
      const bool rests = look != 0 && random.below(3) == 0;
      for (std::size_t i = 0; !rests && i < kColumns; ++i) {
        if (random.below(3) == 0) continue;
        values[i] = is_gauge(i) ? random.below(100) : values[i] + random.below(1000);
      }
      // A counter that goes back, another service.
      if (!rests && random.below(200) == 0) values[4] = random.below(values[4] + 1);
      if (random.below(300) == 0) values[0] = random.below(50), ++instance;
      plain.add(now, instance, values);
      const bool same = std::equal(values.begin(), values.end(), history.values().begin());
      if (same && random.below(8) != 0) {
        history.add_same(now, instance);
      } else {
        history.add(now, instance, values);
      }
      if (look % 97 == 0 || look > 2990) {
        CAPTURE(look);
        check_alike(history, plain);
      }
    }
  }
}

}  // namespace paceline::daemon
