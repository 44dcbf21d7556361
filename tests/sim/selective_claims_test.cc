// What selective repeat and several paths are for, in the fabric: elephants that collide under
// ECMP, links that lose, links that come and go.
#include <catch2/catch.hpp>
#include <string>

#include "tests/sim/sim_support.h"

namespace paceline::simtest {
namespace {

double efficiency(const tools::ScenarioRun& r) {
  return r.result.metrics[experiment::Metric::collective_efficiency];
}

TEST_CASE("several paths: elephants that collide on one path do not on many", "[selective]") {
  // At line rate the paths are all that differs; 0.2 to 0.3 is what 64 flows hashed to 8 times 8
  // uplinks leave (the busiest has four or five).
  config::Scenario one = shipped("ecmp-collision");
  one.cc.algorithm = "fixed";
  one.cc.profile = "default";
  config::Scenario many = shipped("ecmp-multipath");
  const tools::ScenarioRun collided = run(one);
  CHECK(collided.result.status == experiment::RunStatus::ok);
  CHECK(efficiency(collided) < 0.35);
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    many.seed = seed;
    CAPTURE(seed);
    const tools::ScenarioRun spread = run(many);
    CHECK(spread.result.status == experiment::RunStatus::ok);
    CHECK(spread.result.reason == "");
    CHECK(efficiency(spread) >= 0.85);
    CHECK(spread.network.total_drops() == 0);
    // Nothing was lost: what is sent again is sent again for nothing, and is little.
    CHECK(spread.counters.retransmitted_bytes < spread.counters.tx_data_bytes / 100);
    CHECK(spread.counters.timeouts == 0);
  }
}

TEST_CASE("selective repeat: one packet in a hundred lost costs a few per cent, not nine tenths",
          "[selective]") {
  config::Scenario s;
  s.name = "lossy";
  s.fabric.hosts = 2;
  s.fabric.loss = 0.01;
  s.cc.algorithm = "fixed";
  s.workload.kind = "incast";
  s.workload.fan_in = 1;
  s.workload.message_bytes = 20'000'000;
  const tools::ScenarioRun back = run(s);
  s.transport.reliability = "selective";
  const tools::ScenarioRun selective = run(s);
  CHECK(back.result.status == experiment::RunStatus::ok);
  CHECK(selective.result.status == experiment::RunStatus::ok);
  // Two links: 2 % of the data is sent again, and a round trip or two is lost at the end.
  CHECK(efficiency(selective) > 0.93);
  CHECK(efficiency(back) < 0.5);
  // Each loss once, or again when the repetition is lost as well; a few for nothing.
  CHECK(selective.counters.retransmitted_packets >= selective.network.total_drops() / 4);
  CHECK(selective.counters.retransmitted_packets < 2 * selective.network.total_drops());
}

// A hundred first windows make a queue of a hundred empty round trips: whoever goes by the round
// trips of before sends everything twice, and what was sent twice is no measure of the new ones.
TEST_CASE("selective repeat: a queue that grows faster than it is measured repeats little",
          "[selective]") {
  for (const char* algorithm : {"swift", "dctcp", "nscc", "theta-powertcp"}) {
    CAPTURE(algorithm);
    config::Scenario s;
    s.name = "crowd";
    s.fabric.hosts = 101;
    s.transport.reliability = "selective";
    s.cc.algorithm = algorithm;
    s.workload.kind = "incast";
    s.workload.fan_in = 100;
    s.workload.message_bytes = 500'000;
    const tools::ScenarioRun crowd = run(s);
    CHECK(crowd.result.status == experiment::RunStatus::ok);
    CHECK(crowd.network.total_drops() == 0);
    CHECK(crowd.counters.timeouts == 0);
    // A few probes for each doubling of the wait: some 16 of each sender's 123 packets.
    CHECK(crowd.counters.retransmitted_packets < crowd.counters.tx_data_packets / 6);
    CHECK(efficiency(crowd) > 0.8);
  }
}

// Most packets of a spread message come early and bring an XACK each. What completes it may be one
// that does not ask for any: unless it is acknowledged all the same, the sender waits for its
// timers and sends again what has arrived.
TEST_CASE("several paths: acknowledgements that are asked for seldom hold nothing up",
          "[selective]") {
  config::Scenario s =
      shipped("ecmp-multipath",
              {"fabric.hosts_per_leaf=16", "fabric.links_per_pair=2", "fabric.pfc.enabled=false",
               "fabric.trim.enabled=true", "cc.profile=default", "workload.message_bytes=1MB"});
  for (const char* algorithm : {"dcqcn", "nscc"}) {
    s.cc.algorithm = algorithm;
    s.transport.ack_every = 1;
    const tools::ScenarioRun each = run(s);
    REQUIRE(each.result.status == experiment::RunStatus::ok);
    for (const std::uint32_t every : {4U, 16U}) {
      CAPTURE(algorithm, every);
      s.transport.ack_every = every;
      const tools::ScenarioRun seldom = run(s);
      CHECK(seldom.result.status == experiment::RunStatus::ok);
      // 131 us instead of 105, and a hundred packets for nothing, is what it was.
      CHECK(efficiency(seldom) > 0.93 * efficiency(each));
      CHECK(seldom.counters.duplicates == 0);
      CHECK(seldom.counters.retransmitted_packets == seldom.network.trimmed_packets);
      CHECK(seldom.counters.acks_sent < each.counters.acks_sent);
      CHECK(seldom.counters.timeouts == 0);
    }
  }
}

TEST_CASE("several paths: an uplink that dies is left before routes know", "[selective]") {
  config::Scenario s = shipped("link-flap");
  const tools::ScenarioRun back = run(s);
  s.transport.reliability = "selective";
  s.transport.multipath = "packet";
  const tools::ScenarioRun several = run(s);
  CHECK(several.result.status == experiment::RunStatus::ok);
  CHECK(several.result.reason == "");
  CHECK(several.network.link_failures == 1);
  CHECK(several.counters.retransmitted_bytes > 0);
  CHECK(efficiency(several) > efficiency(back));
}

}  // namespace
}  // namespace paceline::simtest
