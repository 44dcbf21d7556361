// Who gets how much of a port: weights, little that is left, and what starts are owed.
#include <catch2/catch.hpp>

#include "tests/unit/cc/cadence_port.h"
#include "tests/unit/cc/cadence_sender.h"

namespace paceline::cc {
namespace {

TEST_CASE("cadence receiver: I3, starts are charged and shrink the plan until they are paid") {
  Port w;
  w.request(0, 50'000'000);
  w.run(10 * w.p.rtt_ns);
  for (std::uint32_t id = 1; id <= 8; ++id) w.request(id, 58'000, 58'000, kCapNoGrant);
  CHECK(w.r.snapshot().virtual_queue_bytes == 8 * 58'000);
  w.filler = 1;
  w.run(2 * w.p.rtt_ns);
  const auto s = w.r.snapshot();
  const std::uint64_t cut =
      (8 * 58'000 - w.p.q_target_bytes - 4 * w.p.bdp_bytes) * 8000 / std::uint64_t(w.p.drain_ns);
  CHECK(s.capacity_mbps < w.p.eta_mbps - std::min<std::uint64_t>(cut, w.p.eta_mbps / 2));
  CHECK(w.rate(0) < w.p.eta_mbps);
  CHECK(w.rate(0) > 0);
  w.run(40 * w.p.rtt_ns);
  CHECK(w.r.snapshot().virtual_queue_bytes <= w.p.q_target_bytes);
  CHECK(w.rate(0) == Approx(double(w.p.eta_mbps)).epsilon(0.05));
}

// The ledger believes in senders that use what they have. This one does not: nothing arrives.
TEST_CASE("cadence receiver: a port that idles owes no more than what was announced lately") {
  Port w;
  w.request(0, 50'000'000);
  w.run(10 * w.p.rtt_ns);
  for (std::uint32_t id = 1; id <= 8; ++id) w.request(id, 58'000, 58'000, kCapNoGrant);
  const std::uint64_t owed = w.r.snapshot().virtual_queue_bytes;
  w.run(w.p.rtt_ns);
  CHECK(w.r.snapshot().virtual_queue_bytes > owed / 2);  // it may still be on its way
  w.run(2 * w.p.rtt_ns);
  CHECK(w.r.snapshot().virtual_queue_bytes == 0);
  w.run(w.p.rtt_ns);
  CHECK(w.rate(0) >= w.p.eta_mbps);
}

TEST_CASE("cadence receiver: starts that come while the port is full are owed all the same") {
  Port w;
  w.request(0, 50'000'000);
  w.run(10 * w.p.rtt_ns);
  w.request(1, 10'000, 10'000, kCapNoGrant);
  w.filler = 1;
  std::uint64_t announced = 10'000;
  for (std::uint32_t i = 0; i < 20; ++i) {
    w.request(2 + i % 6, 40'000, 40'000, kCapNoGrant);
    announced += 40'000;
    w.run(w.p.rtt_ns / 2);
    const auto s = w.r.snapshot();
    // What the port carried beside what is committed has been paid, and nothing else.
    const std::uint64_t most = bytes_at(w.p.link_mbps, (std::int64_t{i} + 1) * w.p.rtt_ns / 2);
    CHECK(s.virtual_queue_bytes + most >= announced);
  }
  CHECK(w.r.snapshot().virtual_queue_bytes > 200'000);
}

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

TEST_CASE("cadence receiver: among more than 256 channels all are alike") {
  for (const std::uint32_t channels : {256U, 257U}) {
    Port w({{"a_max", 512}});
    for (std::uint32_t id = 0; id < channels; ++id) w.request(id, id == 7 ? 100'000 : 500'000'000);
    w.run(60 * w.p.rtt_ns);
    CHECK(double(w.rate(7)) ==
          Approx((channels == 256 ? 3.0 : 1.0) * double(w.rate(8))).epsilon(0.1));
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
