// A host polls late, and nobody tells the engine: to round trips of polls that is a queue in the
// network, to those of a port that stamps what arrives it is nothing.
#include <catch2/catch.hpp>

#include "tests/unit/transport/timed_write.h"

namespace paceline::transport::test {
namespace {

struct StampShape {
  Reliability reliability = Reliability::go_back_n;
  unsigned late_side = 0;  // 0: the sender, 1: the receiver
  Picos late = picos_from_micros(50);
  bool stamps = true;
  Picos error{0};  // of the stamps
};

struct StampResult {
  Picos took{0};
  std::uint64_t longest_ns = 0;  // smoothed round trip
  ArrivalStamps stamps{};
};

// One WRITE under Swift; a host is away once in the middle.
StampResult write_with_late_poll(const StampShape& shape) {
  LabOptions options = timed_write_options(shape.reliability, cc::AlgorithmId::swift);
  options.qp.retransmit_timeout = picos_from_micros(500);
  options.stamps_arrivals = shape.stamps;
  Lab lab(options);
  Lab::fill(lab.a().memory, 7);
  lab.a().port.set_stamp_error(shape.error);
  lab.b().port.set_stamp_error(shape.error);
  const Lab::Pair pair = lab.connect(100, 0);
  lab.run(picos_from_micros(50));
  if (shape.late.count != 0) {
    const Picos from = lab.now() + picos_from_micros(40);
    lab.stop_host(shape.late_side, {from, from + shape.late, false});
  }
  StampResult result;
  lab.on_poll = [&](unsigned side) {
    if (side != 0) return;
    telemetry::QueuePairRecord record;
    REQUIRE(lab.a().engine.view().describe_qp(lab.now(), pair.a, record));
    result.longest_ns = std::max(result.longest_ns, record.srtt_ns);
  };
  result.took = timed_write(lab, pair);
  result.stamps = lab.a().engine.view().arrival_stamps();
  return result;
}

// Swift takes a poll that is 50 us late for 50 us of queue, and cuts its rate.
TEST_CASE("a late poll of the sender is no queue where packets are stamped", "[transport]") {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    CAPTURE(static_cast<int>(reliability));
    StampShape shape{.reliability = reliability};
    const StampResult stamped = write_with_late_poll(shape);
    shape.stamps = false;
    const StampResult polled = write_with_late_poll(shape);
    shape.late = Picos{0};
    const StampResult quiet = write_with_late_poll(shape);
    CAPTURE(quiet.took.count, stamped.took.count, polled.took.count);
    CAPTURE(quiet.longest_ns, stamped.longest_ns, polled.longest_ns);
    CHECK(quiet.stamps.samples == 0);
    CHECK(polled.stamps.samples == 0);
    CHECK(stamped.stamps.samples > 0);
    CHECK(stamped.stamps.refused == 0);
    // One sample of 50 us more is an eighth of that in the smoothed round trip.
    CHECK(polled.longest_ns > quiet.longest_ns + 6'000);
    CHECK(stamped.longest_ns < quiet.longest_ns + 1'000);
    // What was not sent meanwhile is behind; the cut comes on top.
    CHECK(stamped.took < quiet.took + picos_from_micros(50 + 5));
    CHECK(polled.took > stamped.took + picos_from_micros(5));
  }
}

// With selective repeat the answer says how long the receiver had the packet: from its arrival on.
TEST_CASE("a late poll of the receiver is its own time where packets are stamped", "[transport]") {
  StampShape shape{.reliability = Reliability::selective, .late_side = 1};
  const StampResult stamped = write_with_late_poll(shape);
  shape.stamps = false;
  const StampResult polled = write_with_late_poll(shape);
  shape.late = Picos{0};
  const StampResult quiet = write_with_late_poll(shape);
  CAPTURE(quiet.longest_ns, stamped.longest_ns, polled.longest_ns);
  CHECK(polled.longest_ns > quiet.longest_ns + 6'000);
  // 50 us of packets are answered at once, and the answers wait for each other: 600 of 88 bytes at
  // 100 Gb/s are 4.2 us.
  CHECK(stamped.longest_ns < quiet.longest_ns + 4'500);
}

TEST_CASE("an answer cannot come before what it answers", "[transport]") {
  StampShape shape;
  shape.error = picos_from_micros(30);  // more than a round trip
  const StampResult wrong = write_with_late_poll(shape);
  CHECK(wrong.stamps.samples == 0);
  CHECK(wrong.stamps.refused > 0);
  // The polls' times are left, as if there were no stamps.
  shape.stamps = false;
  const StampResult polled = write_with_late_poll(shape);
  CHECK(wrong.took == polled.took);
  CHECK(wrong.longest_ns == polled.longest_ns);
}

}  // namespace
}  // namespace paceline::transport::test
