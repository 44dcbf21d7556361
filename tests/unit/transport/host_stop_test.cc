// The host stands still while packets are in flight. That tells nothing about the network: nothing
// is sent again for it, and no rate comes down. Each case is run as well without telling the
// engine, which shows that there was something to get wrong.
#include <catch2/catch.hpp>

#include "tests/unit/transport/timed_write.h"

namespace paceline::transport::test {
namespace {

struct StopShape {
  cc::AlgorithmId algorithm = cc::AlgorithmId::fixed;
  Reliability reliability = Reliability::go_back_n;
  Picos gap = picos_from_micros(200);  // 0: no stop
  bool told = true;
};

struct StopResult {
  Picos took{0};
  telemetry::EngineCounters sender{};
  HostStops stops{};
};

// One WRITE; the sender's host stops in the middle. The timer is shorter than the stop and much
// longer than a round trip.
StopResult write_across_stop(const StopShape& shape) {
  LabOptions options = timed_write_options(shape.reliability, shape.algorithm);
  options.qp.retransmit_timeout = picos_from_micros(100);
  Lab lab(options);
  Lab::fill(lab.a().memory, 7);
  const Lab::Pair pair = lab.connect(100, 0);
  lab.run(picos_from_micros(50));
  if (shape.gap.count != 0) {
    const Picos from = lab.now() + picos_from_micros(40);
    lab.stop_host(0, {from, from + shape.gap, shape.told});
  }
  const Picos took = timed_write(lab, pair);
  return {took, lab.a().counters(), lab.a().engine.view().host_stops()};
}

TEST_CASE("a stop of the host is not a loss: go-back-N", "[transport]") {
  const StopResult told = write_across_stop({});
  CHECK(told.stops.count == 1);
  CHECK(told.stops.total >= picos_from_micros(200));
  CHECK(told.sender.timeouts == 0);
  CHECK(told.sender.retransmitted_packets == 0);
  const StopResult silent = write_across_stop({.told = false});
  CHECK(silent.stops.count == 0);
  CHECK(silent.sender.timeouts == 1);
  CHECK(silent.sender.retransmitted_packets > 0);
}

TEST_CASE("a stop of the host is not a loss: selective repeat", "[transport]") {
  const StopResult told = write_across_stop({.reliability = Reliability::selective});
  CHECK(told.stops.count == 1);
  CHECK(told.sender.timeouts == 0);
  CHECK(told.sender.tail_probes == 0);
  CHECK(told.sender.retransmitted_packets == 0);
  const StopResult silent =
      write_across_stop({.reliability = Reliability::selective, .told = false});
  CHECK(silent.sender.timeouts + silent.sender.tail_probes > 0);
  CHECK(silent.sender.retransmitted_packets > 0);
}

// Swift cuts its rate for one round trip of 200 us; what it then takes longer is the measure.
TEST_CASE("a stop of the host is not congestion", "[transport]") {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    CAPTURE(static_cast<int>(reliability));
    StopShape shape{.algorithm = cc::AlgorithmId::swift, .reliability = reliability};
    shape.gap = Picos{0};
    const StopResult quiet = write_across_stop(shape);
    // Shorter than the timer, which has nothing to do with it here.
    shape.gap = picos_from_micros(80);
    const StopResult told = write_across_stop(shape);
    shape.told = false;
    const StopResult silent = write_across_stop(shape);
    CHECK(told.stops.samples_dropped > 0);
    CHECK(told.sender.retransmitted_packets == 0);
    // A round trip is lost besides the stop: what was not sent during it. That may take 5 us.
    CAPTURE(quiet.took.count, told.took.count, silent.took.count, silent.sender.cnps_received);
    CHECK(told.took - shape.gap < quiet.took + picos_from_micros(5));
    CHECK(silent.took > told.took + picos_from_micros(5));
  }
}

TEST_CASE("what is lost during a stop is sent again all the same", "[transport]") {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    CAPTURE(static_cast<int>(reliability));
    LabOptions options = small_packets();
    options.engine.reliability = reliability;
    options.qp.retransmit_timeout = picos_from_micros(100);
    Lab lab(options);
    Lab::fill(lab.a().memory, 8);
    const Lab::Pair pair = lab.connect(100, 0);
    int lost = 0;
    lab.b().cable.set_script(drop_if([&](const wire::ParsedPacket& p) {
      return p.properties.operation == wire::Operation::write && lost++ == 0;
    }));
    const Picos begun = lab.now();
    lab.stop_host(0, {begun + picos_from_micros(1), begun + picos_from_micros(301), true});
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, kMtu));
    lab.run(picos_from_micros(100'000));
    REQUIRE(lab.a().sent().size() == 1);
    CHECK(equal_memories(lab, kMtu));
    CHECK(lab.a().counters().retransmitted_packets == 1);
    // Not at the end of the stop: patience is measured in time in which it could have been heard.
    if (reliability == Reliability::go_back_n) {
      CHECK(lab.a().counters().timeouts == 1);
      CHECK(lab.now() - begun >= picos_from_micros(300 + 99));
    }
  }
}

TEST_CASE("stops add up, and do no harm when nothing is under way", "[transport]") {
  Lab lab(small_packets());
  lab.connect(100, 0);
  lab.run(picos_from_micros(100));
  for (int i = 1; i <= 3; ++i) {
    lab.a().engine.stopped(lab.now(), picos_from_micros(10 * i));
    lab.touch(0);
    lab.run(lab.now() + picos_from_micros(100));
  }
  CHECK(lab.a().engine.view().host_stops().count == 3);
  CHECK(lab.a().engine.view().host_stops().total == picos_from_micros(60));
  CHECK(lab.a().counters().timeouts == 0);
  CHECK(lab.leftovers().empty());
}

}  // namespace
}  // namespace paceline::transport::test
