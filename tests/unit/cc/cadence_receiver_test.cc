// The allocator of a receiving port, rule by rule, with hand-written REQUESTs.
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "cc/cadence/cadence.h"
#include "cc/cadence/receiver/receiver.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/cc/cadence_port.h"

namespace paceline::cc {
namespace {

TEST_CASE("cadence receiver: a lone channel gets the plan at once") {
  Port w;
  w.request(7, 50'000'000);
  w.poll();
  CHECK(w.rate(7) == w.p.eta_mbps);
  CHECK(w.peers[7].grant.grant_seq != 0);
  CHECK(w.peers[7].grant.channel == 7);
  CHECK(w.peers[7].grant.timestamp_echo_ns == w.peers[7].request.timestamp_ns);
  CHECK(w.peers[7].grant.limit_total <=
        w.p.eta_mbps * std::uint64_t(w.peers[7].grant.lease_us * 1000 + 2 * w.p.rtt_ns) / 8000 +
            2 * w.p.packet_bytes);
}

TEST_CASE("cadence receiver: a cap leaves the rest to others") {
  Port w;
  w.request(1, 50'000'000, 0, 10'000);
  w.request(2, 50'000'000);
  w.run(20 * w.p.rtt_ns);
  CHECK(w.rate(1) == 10'000);
  CHECK(w.rate(2) == Approx(w.p.eta_mbps - 10'000.0).epsilon(0.01));
}

TEST_CASE("cadence receiver: I1, a newcomer waits until the decrease is confirmed") {
  Port w;
  w.request(1, 50'000'000);
  w.run(4 * w.p.rtt_ns);
  w.request(2, 50'000'000);
  w.run(4 * w.p.rtt_ns, false);
  CHECK(w.rate(1) == Approx(w.p.eta_mbps / 2.0).epsilon(0.01));
  CHECK(w.peers[2].grants == 0);
  const unsigned grants = w.peers[1].grants;
  CHECK(grants >= 3);  // the decrease is told again
  w.peers[1].request.grant_echo = static_cast<std::uint16_t>(w.peers[1].grant.grant_seq - 1);
  w.request(1, 50'000'000);  // confirms the grant before: frees nothing
  w.run(2 * w.p.rtt_ns, false);
  CHECK(w.peers[1].grants == grants + 1);  // it is told again
  CHECK(w.r.snapshot().committed_mbps == w.p.eta_mbps);
  CHECK(w.peers[2].grants == 0);
  w.echo(1);
  w.now += w.p.rtt_ns;
  w.poll();
  CHECK(w.rate(2) == Approx(w.p.eta_mbps / 2.0).epsilon(0.01));
}

TEST_CASE(
    "cadence receiver: I1, an unconfirmed decrease is released by the old lease's end and "
    "then by halving") {
  Port w;
  w.request(1, 50'000'000);
  w.run(2 * w.p.rtt_ns);
  const std::int64_t lease = std::int64_t{w.peers[1].grant.lease_us} * 1000;
  const std::int64_t granted = w.now;
  for (std::uint32_t id = 2; id <= 16; ++id) w.request(id, 50'000'000);
  w.run(lease - 4 * w.p.rtt_ns, false);  // silent sender 1: no refresh beyond the old lease
  CHECK(w.r.snapshot().committed_mbps == w.p.eta_mbps);
  CHECK(w.peers[2].grants == 0);
  std::uint64_t newcomers = 0;
  while (newcomers == 0) {
    w.now += w.p.rtt_ns;
    w.poll();
    for (std::uint32_t id = 2; id <= 16; ++id) newcomers += w.rate(id);
    REQUIRE(w.now < granted + 2 * lease);
  }
  // A scan every two RTT sees at most two halvings.
  CHECK(newcomers <= w.p.eta_mbps * 3 / 4 + 1);
  CHECK(w.now >= granted + lease - 3 * w.p.rtt_ns);
}

TEST_CASE("cadence receiver: demand 0 releases at once and is confirmed with a number of its own") {
  Port w;
  w.request(1, 50'000'000);
  w.request(2, 50'000'000);
  w.run(10 * w.p.rtt_ns);
  const std::uint16_t seq = w.peers[1].grant.grant_seq;
  w.peers[1].request.grant_echo = 0;
  w.request(1, 0);
  CHECK(w.r.snapshot().committed_mbps == Approx(w.p.eta_mbps / 2.0).epsilon(0.02));
  w.run(3 * w.p.rtt_ns);
  CHECK(w.rate(1) == 0);
  CHECK_FALSE(w.peers[1].grant.hold);
  CHECK(seq_distance(w.peers[1].grant.grant_seq, seq) == 1);
  CHECK(w.rate(2) == Approx(double(w.p.eta_mbps)).epsilon(0.01));
}

TEST_CASE("cadence receiver: repeated and reordered REQUESTs change nothing") {
  Port w;
  w.request(1, 50'000'000, 4170);
  w.poll();
  const RequestMessage first = w.peers[1].request;
  const std::uint64_t limit = w.peers[1].grant.limit_total;
  w.r.on_request(Nanos{w.now}, 1, first);
  w.run(w.p.rtt_ns);
  CHECK(w.peers[1].grant.limit_total == limit);
  w.now += 1000;
  w.request(1, 0);
  CHECK(w.r.snapshot().active == 0);
  w.r.on_request(Nanos{w.now}, 1, first);  // overtaken by its successor
  CHECK(w.r.snapshot().active == 0);
}

TEST_CASE("cadence receiver: a sender that restarted its numbers is understood after a while") {
  Port w;
  for (int i = 0; i < 10; ++i) w.request(1, 50'000'000);
  w.run(4 * w.p.rtt_ns);
  w.peers[1].request.req_seq = 0;
  w.peers[1].request.grant_echo = 0;
  w.now += 100 * w.p.rtt_ns;
  w.request(1, 10'000'000);
  w.now += w.p.rtt_ns;
  w.poll();
  CHECK(w.rate(1) == w.p.eta_mbps);
}

TEST_CASE("cadence receiver: a receiver that lost its state goes on from the sender's numbers") {
  Port w;
  w.peers[1].request.grant_echo = 5000;
  w.request(1, 10'000'000);
  w.poll();
  CHECK(seq_distance(w.peers[1].grant.grant_seq, 5000) > 0);
}

TEST_CASE(
    "cadence receiver: I4, more channels than the active set: HOLD, rotation, everybody's "
    "turn") {
  Port w({{"a_max", 4}});
  for (std::uint32_t id = 0; id < 19; ++id) w.request(id, 500'000'000);
  w.run(10 * w.p.rtt_ns);
  unsigned held = 0, served = 0;
  for (auto& [id, peer] : w.peers) {
    held += peer.grant.hold ? 1 : 0;
    served += peer.grant.rate_mbps > 0 ? 1 : 0;
  }
  CHECK(served <= 4);
  CHECK(held >= 15);
  std::map<std::uint32_t, unsigned> turns;
  for (int i = 0; i < 4000; ++i) {
    w.run(2 * w.p.rtt_ns);
    if (!w.fault.empty()) FAIL(w.fault);
    for (auto& [id, peer] : w.peers) turns[id] += peer.grant.rate_mbps > 0 ? 1 : 0;
  }
  for (std::uint32_t id = 0; id < 19; ++id) CHECK(turns[id] > 300);
}

TEST_CASE("cadence receiver: who comes last is not left with what the others do not need") {
  Port w;
  for (std::uint32_t id = 1; id <= 30; ++id) w.request(id, 50'000'000);
  w.run(20 * w.p.rtt_ns);
  w.request(31, 50'000'000);
  w.run(40 * w.p.rtt_ns);
  const std::uint64_t fair = w.p.eta_mbps / 31;
  CHECK(w.rate(31) > fair - fair / 8);
}

TEST_CASE(
    "cadence receiver: a silent sender's capacity comes back, and it is told should it live") {
  Port w;
  w.request(1, 50'000'000);
  w.request(2, 50'000'000);
  w.run(10 * w.p.rtt_ns);
  w.peers[1].request.demand_bytes = 0;  // echo() skips it from now on: dead
  for (int i = 0; i < 400; ++i) {
    w.arrive(2, bytes_at(w.rate(2), w.p.rtt_ns));
    w.run(w.p.rtt_ns);
  }
  CHECK(w.peers[1].grant.revoke);
  CHECK(w.r.snapshot().active == 1);
  CHECK(w.rate(2) == Approx(double(w.p.eta_mbps)).epsilon(0.02));
  // Told once: the dead do not answer.
  const unsigned told = w.peers[1].grants;
  for (int i = 0; i < 400; ++i) {
    w.arrive(2, bytes_at(w.rate(2), w.p.rtt_ns));
    w.run(w.p.rtt_ns);
  }
  CHECK(w.peers[1].grants == told);
}

TEST_CASE("cadence receiver: CLOSE and forget leave nothing behind") {
  Port w;
  w.request(1, 50'000'000);
  w.request(2, 50'000'000);
  w.run(10 * w.p.rtt_ns);
  w.peers[1].request.close = true;
  w.request(1, 50'000'000);
  w.r.forget(Nanos{w.now}, 2);
  CHECK(w.r.snapshot().committed_mbps == 0);
  CHECK(w.r.snapshot().active == 0);
  w.poll();
}

TEST_CASE("cadence receiver: invariants hold under random REQUESTs, lost echoes and silence",
          "[property]") {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U}) {
    INFO("seed " << seed);
    Random random(seed);
    Port w({{"a_max", 8}});
    for (int i = 0; i < 4000; ++i) {
      const auto id = static_cast<std::uint32_t>(random.below(30));
      switch (random.below(8)) {
        case 0:
          w.request(id, 0);
          break;
        case 1:
          w.request(id, 1 + random.below(20'000'000), random.below(60'000),
                    static_cast<std::uint32_t>(1 + random.below(100'000)));
          break;
        case 2:
          w.request(id, 1 + random.below(50'000), random.below(60'000));
          break;
        case 4:
          if (w.peers.count(id) != 0 && random.below(10) == 0) {
            w.r.forget(Nanos{w.now}, id);
            w.peers.erase(id);
          }
          break;
        default:
          if (w.peers.count(id) != 0 && w.peers[id].grants > 0 &&
              w.peers[id].request.demand_bytes > 0) {
            w.echo(id);
          }
      }
      w.now += static_cast<std::int64_t>(random.below(6000));
      w.poll();
      REQUIRE(w.fault == "");
    }
  }
}

}  // namespace
}  // namespace paceline::cc
