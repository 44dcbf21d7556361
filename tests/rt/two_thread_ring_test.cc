// The proof of the idea: transport::Engine, the class that runs in virtual time, unchanged, one
// instance per thread, under the processor's clock, joined by rings in memory. Bounded by counts of
// messages and bytes; how long it takes is nobody's business but ctest's.
#include <atomic>
#include <catch2/catch.hpp>

#include "tests/rt/support/verified_side.h"
#include "tests/support/impair.h"
#include "tests/support/ring_port.h"

namespace paceline::test {
namespace {

void move_both_ways(cc::AlgorithmId algorithm, const Impairments& impairments) {
  RingCableConfig config;
  config.link_rate = rate_from_gbps(10);
  RingCable cable(config);
  ImpairedPort port0(cable.end(0), impairments, Random(1, 0));
  ImpairedPort port1(cable.end(1), impairments, Random(1, 1));
  std::atomic<int> finished{0};
  {
    VerifiedSide side0({0, algorithm, wire::MacAddress::local(1)}, port0, finished);
    VerifiedSide side1({1, algorithm, wire::MacAddress::local(2)}, port1, finished);
    REQUIRE(side0.connect(side1.facts()));
    REQUIRE(side1.connect(side0.facts()));

    const Speaker speakers[] = {{&side0, &port0}, {&side1, &port1}};
    converse(speakers, finished);

    CHECK(side0.verdict() == "");
    CHECK(side1.verdict() == "");
    if (impairments.corrupt > 0) {
      CHECK(telemetry::malformed_total(side0.engine().counters()) +
                telemetry::malformed_total(side1.engine().counters()) >
            0);
    } else {
      CHECK(telemetry::malformed_total(side0.engine().counters()) == 0);
      CHECK(telemetry::malformed_total(side1.engine().counters()) == 0);
    }
    if (impairments.mark > 0 && algorithm == cc::AlgorithmId::dcqcn) {
      CHECK(side0.engine().counters().cnps_received > 0);
      CHECK(side1.engine().counters().cnps_received > 0);
    }
  }
  // Engines are gone; every packet is home.
  port0.take_back();
  port1.take_back();
  cable.drain();
  CHECK(cable.end(0).packets().in_use() == 0);
  CHECK(cable.end(1).packets().in_use() == 0);
}

TEST_CASE("one engine class, two threads, a real clock: fixed", "[rt][threads]") {
  move_both_ways(cc::AlgorithmId::fixed, {});
}

TEST_CASE("one engine class, two threads, a real clock: dcqcn with marks", "[rt][threads]") {
  move_both_ways(cc::AlgorithmId::dcqcn, {.mark = 0.02});
}

TEST_CASE("one engine class, two threads, a real clock: a bad cable", "[rt][threads]") {
  move_both_ways(cc::AlgorithmId::dcqcn,
                 {.drop = 0.002, .corrupt = 0.002, .duplicate = 0.005, .reorder = 0.002});
}

}  // namespace
}  // namespace paceline::test
