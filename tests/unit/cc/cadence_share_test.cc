// Which channel gets how much of a port: weights, and channels with little left to send.
#include <catch2/catch.hpp>

#include "tests/unit/cc/cadence_port.h"
#include "tests/unit/cc/cadence_sender.h"

namespace paceline::cc {
namespace {

TEST_CASE("cadence receiver: who has little left gets more of the port") {
  for (const double weight : {1.0, 3.0, 8.0}) {
    CAPTURE(weight);
    Port w({{"little_weight", weight}});
    w.request(1, 4 * w.p.bdp_bytes - 1);
    w.request(2, 4 * w.p.bdp_bytes);
    w.request(3, 500'000'000);
    w.run(20 * w.p.rtt_ns);
    CHECK(double(w.rate(1)) == Approx(weight * double(w.rate(3))).epsilon(0.05));
    CHECK(w.rate(2) == w.rate(3));
  }
}

TEST_CASE("cadence receiver: where nobody has sixteen BDP left all are alike") {
  for (const std::uint32_t much : {15U, 17U}) {
    Port w;
    w.request(1, w.p.bdp_bytes);
    w.request(2, much * std::uint64_t{w.p.bdp_bytes});
    w.run(20 * w.p.rtt_ns);
    CHECK(double(w.rate(1)) == Approx((much > 16 ? 3.0 : 1.0) * double(w.rate(2))).epsilon(0.05));
  }
}

TEST_CASE("cadence sender: who has little left wants more of the uplink") {
  Sender w;
  w.post(16 * w.p.bdp_bytes);
  CHECK(Cadence::uplink_want(w.s, w.p).weight == 1);
  CHECK(Cadence::uplink_want(w.s, w.p).bulk);
  w.deliver(w.grant(1, 50'000));
  w.send(2 * w.p.bdp_bytes);
  w.tick();
  CHECK(Cadence::uplink_want(w.s, w.p).weight == 1);
  CHECK_FALSE(Cadence::uplink_want(w.s, w.p).bulk);  // others' weights are not for this
  w.send(11 * w.p.bdp_bytes);
  w.tick();
  CHECK(Cadence::uplink_want(w.s, w.p).weight == 3);
  w.p.little_weight = 1;
  CHECK(Cadence::uplink_want(w.s, w.p).weight == 1);
}

}  // namespace
}  // namespace paceline::cc
