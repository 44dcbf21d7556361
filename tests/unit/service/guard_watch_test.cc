// The guard over a segment that the test writes, without a service.
#include "dataplane/service/congestion/guard_watch.h"

#include <catch2/catch.hpp>

#include "dataplane/telemetry/series.h"
#include "tests/unit/daemon/fake_segment.h"

namespace paceline::service {

namespace {

using telemetry::NicSeries;

struct Watched {
  explicit Watched(std::vector<std::string> nics)
      : segment(nics), watch(segment.bytes(), nics.size()) {
    for (std::size_t i = 0; i < nics.size(); ++i) segment.write(i);
  }
  // A look later, with so many more drops.
  void count(std::uint64_t more) {
    segment.values[telemetry::series_index(NicSeries::last_hop_drops)] += more;
    segment.body.at_ns += 100'000'000;
    segment.write(0);
    REQUIRE(watch.look(0));
  }
  std::optional<GuardWatch::Finding> look(std::uint64_t more) {
    count(more);
    return watch.judge(GuardLimits{}, in_force);
  }

  daemon::FakeSegment segment;
  GuardWatch watch;
  NicInForce in_force{};
};

}  // namespace

TEST_CASE("three looks in a row beyond a limit are a finding", "[guard_watch]") {
  Watched host({"h0"});
  CHECK_FALSE(host.look(0));
  CHECK_FALSE(host.look(20));
  CHECK_FALSE(host.look(20));
  const auto finding = host.look(20);
  REQUIRE(finding.has_value());
  CHECK(finding->trip.rule == GuardRule::dropped);
  CHECK_FALSE(finding->arm.has_value());
  CHECK_FALSE(host.watch.look(1));  // there is no such NIC
}

TEST_CASE("what was counted before other parameters is no evidence against them", "[guard_watch]") {
  Watched host({"h0", "h1"});
  CHECK_FALSE(host.look(0));
  CHECK_FALSE(host.look(20));
  CHECK_FALSE(host.look(20));
  host.watch.restart(0);
  CHECK_FALSE(host.look(20));
  // A NIC that restarts between a look and its judgement does not change the judgement.
  CHECK_FALSE(host.look(20));
  host.count(20);
  host.watch.restart(1);
  CHECK(host.watch.judge(GuardLimits{}, host.in_force).has_value());
}

TEST_CASE("a quarantine is told once, and a broken rule until it was kept again", "[guard_watch]") {
  Watched host({"h0"});
  CHECK_FALSE(host.look(0));
  CHECK_FALSE(host.watch.new_quarantine());
  host.segment.values[telemetry::counter_index("plugin_quarantines")] = 2;
  CHECK_FALSE(host.look(0));
  CHECK(host.watch.new_quarantine() == 2U);
  CHECK_FALSE(host.look(0));
  CHECK_FALSE(host.watch.new_quarantine());

  CHECK(host.watch.report(0));
  CHECK_FALSE(host.watch.report(0));
  CHECK_FALSE(host.look(0));  // kept
  CHECK(host.watch.report(0));
}

TEST_CASE("events are numbered, the newest are kept, and the last may be latched",
          "[guard_watch]") {
  Watched host({"h0"});
  for (std::size_t i = 0; i < GuardWatch::kMostEvents + 3; ++i) host.watch.note(0, GuardEvent{});
  CHECK(host.watch.events(0).size() == GuardWatch::kMostEvents);
  CHECK(host.watch.events(0).front().number == 4);
  CHECK(host.watch.latched(0) == 0);
  host.watch.latch(0);
  CHECK(host.watch.latched(0) == GuardWatch::kMostEvents + 3);
  host.watch.clear(0);
  CHECK(host.watch.latched(0) == 0);
}

}  // namespace paceline::service
