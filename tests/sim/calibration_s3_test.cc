// Acknowledgements that wait behind data in switches, as in the public HPCC simulator: two incasts
// cross, so that either receiver's own flows hear of marks only behind the other's incast, and
// short messages of the receivers are acknowledged as late as the queue is deep.
//
// One draw of the starts; only the marking's seed differs between runs, and the mean of five is
// compared. Times that the bottleneck determines are corrected for the reference's clock.
#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/sim/calibration.h"

namespace paceline::calibration {
namespace {

constexpr double kShort = 1000;  // bytes; all others have 1 MB

// Microseconds.
struct Crossing {
  double short_mean = 0;
  double crossing_mean = 0;  // of 0 to 1 and 1 to 0, each a receiver's
  double long_mean = 0;
  double last = 0;

  void add(const PlannedMessage& flow, double fct_us) {
    if (flow.bytes == kShort) {
      short_mean += fct_us / 28;
      return;
    }
    if (flow.src <= 1 && flow.dst <= 1) crossing_mean += fct_us / 2;
    long_mean += fct_us / 32;
    last = std::max(last, fct_us);
  }
};

Crossing reference_crossing() {
  std::ifstream file(reference_path("S3_bidirectional_dcqcn_1000.csv"));
  std::string line;
  REQUIRE(std::getline(file, line));
  REQUIRE(line == "src,dst,size_bytes,start_ns,fct_ns");
  Crossing out;
  std::size_t flows = 0;
  while (std::getline(file, line)) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream fields(line);
    PlannedMessage flow;
    double start_ns = 0, fct_ns = 0;
    REQUIRE((fields >> flow.src >> flow.dst >> flow.bytes >> start_ns >> fct_ns));
    out.add(flow, fct_ns / 1000 * kClockCorrection);
    ++flows;
  }
  REQUIRE(flows == 60);
  return out;
}

Crossing run_crossing(config::Scenario s3, std::uint64_t seed) {
  s3.seed = seed;
  const MessagePlan plan = reference_flows("S3_bidirectional.flows.csv");
  WorldOptions options;
  options.check_invariants = true;
  VirtualWorld world(s3, plan, options);
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(world.network().stats().total_drops() == 0);
  REQUIRE(world.network().stats().pause_frames == 0);
  Crossing out;
  for (std::size_t i = 0; i < plan.messages.size(); ++i) {
    const MessageRecord& record = world.records()[i];
    out.add(plan.messages[i], static_cast<double>((record.completed - record.ready).count) / 1e6);
  }
  return out;
}

TEST_CASE("two incasts that cross, with ACKs behind data: every time as the reference's",
          "[calibration]") {
  const config::Scenario s3 = scenario("s3-bidirectional", "hpcc-repo");
  REQUIRE(same_flows(scenario_flows(s3), reference_flows("S3_bidirectional.flows.csv")));
  constexpr std::uint64_t kSeeds = 5;
  Crossing ours;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Crossing run = run_crossing(s3, seed);
    ours.short_mean += run.short_mean / kSeeds;
    ours.crossing_mean += run.crossing_mean / kSeeds;
    ours.long_mean += run.long_mean / kSeeds;
    ours.last += run.last / kSeeds;
  }
  const Crossing reference = reference_crossing();
  CHECK(ours.short_mean == Approx(reference.short_mean).epsilon(0.1));
  CHECK(ours.crossing_mean == Approx(reference.crossing_mean).epsilon(0.1));
  CHECK(ours.long_mean == Approx(reference.long_mean).epsilon(0.1));
  CHECK(ours.last == Approx(reference.last).epsilon(0.1));
}

// What the option explains: with ACKs ahead of data nobody waits for a notification, and the two
// flows, which hear of every mark at once, take three times as long.
TEST_CASE("two incasts that cross, with ACKs ahead of data: another result", "[calibration]") {
  config::Scenario s3 = scenario("s3-bidirectional", "hpcc-repo");
  s3.fabric.ack_class = 7;
  const Crossing ours = run_crossing(s3, 1);
  const Crossing reference = reference_crossing();
  CHECK(ours.short_mean * 20 < reference.short_mean);
  CHECK(ours.crossing_mean > 2 * reference.crossing_mean);
}

}  // namespace
}  // namespace paceline::calibration
