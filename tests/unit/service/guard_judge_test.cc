#include "dataplane/service/congestion/guard_judge.h"

#include <catch2/catch.hpp>

namespace paceline::service {
namespace {

// Looks every 100 ms; each step adds to the sums.
struct Looks {
  GuardJudge judge;
  GuardSample sum;
  GuardLimits limits;
  Looks() { judge.begin(sum); }
  std::optional<GuardTrip> step(const GuardSample& add) {
    sum.at_ns += 100'000'000;
    sum.data_packets += add.data_packets;
    sum.retransmitted_packets += add.retransmitted_packets;
    sum.paused_ns += add.paused_ns;
    sum.stalled_ns += add.stalled_ns;
    sum.stopped_ns += add.stopped_ns;
    sum.dropped_packets += add.dropped_packets;
    return judge.look(sum, limits);
  }
};

GuardSample sent(std::uint64_t data, std::uint64_t again) {
  GuardSample s;
  s.data_packets = data;
  s.retransmitted_packets = again;
  return s;
}
GuardSample paused(std::uint64_t ns) {
  GuardSample s;
  s.paused_ns = ns;
  return s;
}
GuardSample stalled(std::uint64_t ns, std::uint64_t stopped) {
  GuardSample s;
  s.stalled_ns = ns;
  s.stopped_ns = stopped;
  return s;
}
GuardSample dropped(std::uint64_t packets) {
  GuardSample s;
  s.dropped_packets = packets;
  return s;
}

TEST_CASE("three looks in a row trip, two and a good one do not", "[guard]") {
  Looks looks;
  for (int i = 0; i < 5; ++i) {
    CHECK_FALSE(looks.step(sent(1'000, 20)));
    CHECK_FALSE(looks.step(sent(1'000, 20)));
    CHECK(looks.judge.strikes(GuardRule::retransmitted) == 2);
    CHECK_FALSE(looks.step(sent(1'000, 0)));
    CHECK(looks.judge.calm());
  }
  CHECK_FALSE(looks.step(sent(1'000, 20)));
  CHECK_FALSE(looks.step(sent(1'000, 20)));
  const auto trip = looks.step(sent(1'000, 20));
  REQUIRE(trip);
  CHECK(trip->rule == GuardRule::retransmitted);
  CHECK(trip->figure == Approx(0.02));
  CHECK(trip->limit == 1e-6);
}

TEST_CASE("one look that is ten times beyond trips at once", "[guard]") {
  CHECK(Looks().step(sent(1'000'000, 101)));
  CHECK_FALSE(Looks().step(sent(1'000'000, 100)));
  CHECK(Looks().step(paused(10'100'000)));  // 10.1 % against 1 %
  CHECK_FALSE(Looks().step(paused(9'900'000)));
  CHECK(Looks().step(dropped(101)));
  CHECK_FALSE(Looks().step(dropped(100)));
}

TEST_CASE("a few retransmissions, or few of many, are no trip", "[guard]") {
  Looks looks;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(looks.step(sent(100, 10)));  // not more than 10
  looks.limits.retransmitted_share = 0.01;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(looks.step(sent(100'000, 900)));
}

TEST_CASE("a host that stands still has not stalled", "[guard]") {
  Looks looks;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(looks.step(stalled(95'000'000, 60'000'000)));
  CHECK_FALSE(looks.step(stalled(60'000'000, 0)));
  CHECK_FALSE(looks.step(stalled(60'000'000, 0)));
  const auto trip = looks.step(stalled(60'000'000, 5'000'000));
  REQUIRE(trip);
  CHECK(trip->rule == GuardRule::stalled);
  CHECK(trip->figure == Approx(55));
}

TEST_CASE("rules count apart, and one that is off does not count", "[guard]") {
  Looks looks;
  CHECK_FALSE(looks.step(paused(5'000'000)));
  CHECK_FALSE(looks.step(sent(1'000, 20)));
  CHECK_FALSE(looks.step(paused(5'000'000)));
  CHECK_FALSE(looks.step(sent(1'000, 20)));
  looks.limits.pause_share = -1;
  for (int i = 0; i < 10; ++i) CHECK_FALSE(looks.step(paused(100'000'000)));
}

TEST_CASE("what was before a change is no evidence, nor is what was seen before", "[guard]") {
  Looks looks;
  CHECK_FALSE(looks.step(sent(1'000, 20)));
  CHECK_FALSE(looks.step(sent(1'000, 20)));
  CHECK_FALSE(looks.judge.look(looks.sum, looks.limits));
  CHECK(looks.judge.strikes(GuardRule::retransmitted) == 2);
  looks.sum.retransmitted_packets += 100'000;
  looks.judge.begin(looks.sum);
  CHECK(looks.judge.calm());
  CHECK_FALSE(looks.step(sent(1'000, 0)));
  // The first look of a judge that was told nothing is only a beginning.
  GuardJudge fresh;
  CHECK_FALSE(fresh.look(looks.sum, {}));
}

}  // namespace
}  // namespace paceline::service
