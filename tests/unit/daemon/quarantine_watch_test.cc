#include "control/daemon/telemetry/quarantine_watch.h"

#include <catch2/catch.hpp>

#include "tests/unit/daemon/fake_segment.h"

namespace paceline::daemon {

TEST_CASE("a plug-in in quarantine is told once, and not what was so before", "[quarantine]") {
  FakeSegment segment({"h0", "h1"});
  Sampler sampler({});
  REQUIRE(sampler.open(segment.bytes()).empty());
  std::uint64_t& count = segment.values[*sampler.find_series("plugin_quarantines")];
  std::int64_t now = 1'700'000'000'000'000'000;
  QuarantineWatch watch;
  watch.begin(sampler);
  const auto look = [&] {
    sampler.sample(now += 10'000'000);
    return watch.look(sampler);
  };
  count = 3;
  segment.write(1);
  CHECK(look().empty());  // what it finds is not new
  count = 4;
  segment.write(1);
  CHECK(look() == std::vector<std::string>{"h1"});
  CHECK(look().empty());
  count = 5;
  segment.write(1);
  watch.begin(sampler);  // another service
  CHECK(look().empty());
}

}  // namespace paceline::daemon
