// The allocator of a receiving port, rule by rule, with hand-written REQUESTs.
#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "cc/cadence/cadence.h"
#include "cc/cadence/receiver/receiver.h"
#include "dataplane/base/random.h"
#include "tests/unit/cc/cadence_port.h"

namespace paceline::cc {
namespace {

TEST_CASE("cadence receiver: a lone channel gets the plan at once") {
  Port w;
  w.request(7, 50'000'000);
  w.poll();
  CHECK(w.rate(7) == w.lone_mbps());
  CHECK(w.peers[7].grant.grant_seq != 0);
  CHECK(w.peers[7].grant.channel == 7);
  CHECK(w.peers[7].grant.timestamp_echo_ns == w.peers[7].request.timestamp_ns);
  CHECK(w.peers[7].grant.limit_total <=
        w.lone_mbps() * std::uint64_t(w.peers[7].grant.lease_us * 1000 + 2 * w.p.rtt_ns) / 8000 +
            2 * w.p.packet_bytes);
}

TEST_CASE("cadence receiver: who makes room goes on until the newcomer's first byte can be here") {
  Port w;
  w.request(1, 50'000'000);
  w.run(4 * w.p.rtt_ns);
  w.request(2, 50'000'000);
  w.poll();
  CHECK(w.rate(1) == Approx(plan_mbps(w.p, 2) / 2.0).epsilon(0.01));
  CHECK(w.peers[1].grant.effective_delay_us == w.p.rtt_ns / 1000);
  // While starts are to drain, room is made at once.
  w.run(40 * w.p.rtt_ns);
  w.request(3, 50'000'000, 4 * w.p.q_target_bytes);
  w.poll();
  CHECK(w.rate(1) < w.p.eta_mbps * 45 / 100);
  CHECK(w.peers[1].grant.effective_delay_us == 0);
}

TEST_CASE("cadence receiver: a cap or a small demand leaves the rest to others") {
  Port w;
  w.request(1, 50'000'000, 0, 10'000);
  w.request(2, 50'000'000);
  w.run(20 * w.p.rtt_ns);
  CHECK(w.rate(1) == 10'000);
  CHECK(w.rate(2) == Approx(plan_mbps(w.p, 2) - 10'000.0).epsilon(0.01));
}

TEST_CASE("cadence receiver: I1, a newcomer waits until the decrease is confirmed") {
  Port w;
  w.request(1, 50'000'000);
  w.run(4 * w.p.rtt_ns);
  w.request(2, 50'000'000);
  w.run(4 * w.p.rtt_ns, false);
  CHECK(w.rate(1) == Approx(plan_mbps(w.p, 2) / 2.0).epsilon(0.01));
  CHECK(w.peers[2].grants == 0);
  CHECK(w.peers[1].grants >= 4);  // the unconfirmed decrease is repeated every RTT
  w.peers[1].request.grant_echo = static_cast<std::uint16_t>(w.peers[1].grant.grant_seq - 1);
  w.request(1, 50'000'000);  // confirms the grant before: frees nothing
  w.run(2 * w.p.rtt_ns, false);
  CHECK(w.r.snapshot().committed_mbps == w.lone_mbps());
  CHECK(w.peers[2].grants == 0);
  w.echo(1);
  w.now += w.p.rtt_ns;
  w.poll();
  CHECK(w.rate(2) == Approx(plan_mbps(w.p, 2) / 2.0).epsilon(0.01));
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
  CHECK(w.r.snapshot().committed_mbps == w.lone_mbps());
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
  CHECK(w.r.snapshot().committed_mbps == Approx(plan_mbps(w.p, 2) / 2.0).epsilon(0.02));
  w.run(3 * w.p.rtt_ns);
  CHECK(w.rate(1) == 0);
  CHECK_FALSE(w.peers[1].grant.hold);
  CHECK(seq_distance(w.peers[1].grant.grant_seq, seq) == 1);
  CHECK(w.rate(2) == Approx(double(w.lone_mbps())).epsilon(0.01));
}

TEST_CASE("cadence receiver: repeated and reordered REQUESTs change nothing") {
  Port w;
  w.request(1, 50'000'000, 4170);
  w.poll();
  const RequestMessage first = w.peers[1].request;
  const std::uint64_t debt = w.r.snapshot().virtual_queue_bytes;
  CHECK(debt == 4170);
  w.r.on_request(Nanos{w.now}, 1, first);
  CHECK(w.r.snapshot().virtual_queue_bytes == debt);
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
  CHECK(w.rate(1) == w.lone_mbps());
}

TEST_CASE("cadence receiver: a receiver that lost its state goes on from the sender's numbers") {
  Port w;
  w.peers[1].request.grant_echo = 5000;
  w.request(1, 10'000'000);
  w.poll();
  CHECK(seq_distance(w.peers[1].grant.grant_seq, 5000) > 0);
}

TEST_CASE("cadence receiver: I3, its own grants are no new debt before they can have arrived") {
  Port w;
  for (std::uint32_t id = 0; id < 16; ++id) w.request(id, 50'000'000, w.p.packet_bytes);
  w.poll();
  for (int i = 0; i < 4; ++i) {
    w.now += w.p.alloc_ns;
    w.request(0, 50'000'000 + static_cast<std::uint64_t>(i));  // something changed: allocate again
    w.poll();
    CHECK(w.r.snapshot().capacity_mbps > w.p.eta_mbps * 95 / 100);
  }
  for (std::uint32_t id = 0; id < 16; ++id) CHECK(w.peers[id].grants == 1);
}

TEST_CASE("cadence receiver: bytes that needed no grant fill the port, too") {
  Port w;
  w.request(1, 5'000'000'000, 0, 20'000);
  w.run(8 * w.p.rtt_ns);
  for (int i = 0; i < 20; ++i) {
    w.request(2, 50'000, 50'000, kCapNoGrant);
    w.arrive(1, bytes_at(20'000, 2 * w.p.rtt_ns), 3);
    w.arrive(2, bytes_at(79'500, 2 * w.p.rtt_ns));
    w.run(2 * w.p.rtt_ns);
  }
  CHECK(w.paths == 0);  // marked at its own, full port
}

TEST_CASE("cadence receiver: the start budget falls with the channels that started lately") {
  Port w;
  CHECK(w.r.snapshot().start_budget_bytes == w.p.budget_bytes);
  for (std::uint32_t id = 0; id < 4; ++id) w.request(id, 20'000, 20'000, kCapNoGrant);
  CHECK(w.r.snapshot().start_budget_bytes == w.p.budget_bytes / 4);
  for (int again = 0; again < 5; ++again) w.request(0, 20'000, 20'000, kCapNoGrant);
  CHECK(w.r.snapshot().start_budget_bytes == w.p.budget_bytes / 4);  // channels, not messages
  for (std::uint32_t id = 4; id < 100; ++id) w.request(id, 4'000, 4'170, kCapNoGrant);
  CHECK(w.r.snapshot().start_budget_bytes == w.p.packet_bytes);
  w.poll();
  CHECK(w.peers[50].grants == 0);  // within its budget: nothing to tell
  w.request(99, 50'000, 50'000, kCapNoGrant);
  w.poll();
  CHECK(w.peers[99].grants == 1);  // must learn of the number of peers
  CHECK(w.peers[99].grant.unscheduled_budget == w.p.packet_bytes);
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

TEST_CASE("cadence receiver: foreign traffic shrinks the plan, down to the fair floor") {
  Port w;
  w.request(1, 5'000'000'000);
  w.run(4 * w.p.rtt_ns);
  for (int i = 0; i < 200; ++i) {
    w.r.on_unaccounted_bytes(bytes_at(40'000, w.p.rtt_ns));
    w.arrive(1, bytes_at(w.rate(1), w.p.rtt_ns));
    w.run(w.p.rtt_ns);
  }
  CHECK(w.rate(1) == Approx(w.p.eta_mbps - 40'000.0).epsilon(0.05));
  for (int i = 0; i < 200; ++i) {
    w.r.on_unaccounted_bytes(bytes_at(97'000, w.p.rtt_ns));
    w.run(w.p.rtt_ns);
  }
  CHECK(w.rate(1) == Approx(w.p.eta_mbps * w.p.fair_floor).epsilon(0.05));
  for (int i = 0; i < 200; ++i) {
    w.arrive(1, bytes_at(w.rate(1), w.p.rtt_ns));
    w.run(w.p.rtt_ns);
  }
  CHECK(w.rate(1) > w.p.eta_mbps * 95 / 100);
}

// Senders and the ACKs of others may fill the port to the last bit without any queue: only marks
// tell that there is one. Then somebody counts differently, and the plan falls until the port is no
// longer full.
TEST_CASE("cadence receiver: a port that its channels fill is lowered only when it marks") {
  const std::uint32_t senders = GENERATE(1U, 8U);
  CAPTURE(senders);
  Port w;
  const auto arrive = [&](std::uint32_t mbps, int rtts, int marked_every) {
    for (int i = 0; i < rtts; ++i) {
      const std::uint32_t marked = marked_every > 0 && i % marked_every == 0 ? 1 : 0;
      for (std::uint32_t id = 1; id <= senders; ++id) {
        w.arrive(id, bytes_at(mbps / senders, w.p.rtt_ns), marked);
      }
      w.run(w.p.rtt_ns);
    }
  };
  for (std::uint32_t id = 1; id <= senders; ++id) w.request(id, 5'000'000'000);
  w.run(4 * w.p.rtt_ns);
  arrive(100'000, 400, 0);
  CHECK(w.r.snapshot().eta_cut_q6 == 0);
  if (senders == 1) CHECK(w.rate(1) == w.lone_mbps());
  arrive(100'000, 100, 4);
  CHECK(w.r.snapshot().eta_cut_q6 > 0);
  arrive(95'000, 1000, 0);
  CHECK(w.r.snapshot().eta_cut_q6 == 0);
}

TEST_CASE("cadence receiver: who comes last is not left with what the others do not need") {
  // 30 channels hold all of a plan that ACKs then make 2 % smaller; the 31st comes after.
  Port w;
  for (std::uint32_t id = 1; id <= 30; ++id) w.request(id, 50'000'000);
  w.run(20 * w.p.rtt_ns);
  for (int i = 0; i < 100; ++i) {
    w.r.on_unaccounted_bytes(bytes_at(2400, w.p.rtt_ns));
    w.run(w.p.rtt_ns);
  }
  w.request(31, 50'000'000);
  w.run(40 * w.p.rtt_ns);
  const std::uint64_t fair = (w.p.eta_mbps - 2400) / 31;
  CHECK(w.rate(31) > fair - fair / 8);
}

TEST_CASE("cadence receiver: alone, a sender's start is under way, not queued") {
  Port w;
  w.request(1, 50'000'000, w.p.bdp_bytes);
  w.poll();
  CHECK(w.rate(1) > 0);
  CHECK(w.peers[1].grant.queue_us == 0);
  w.request(2, 50'000'000, w.p.bdp_bytes);
  w.run(4 * w.p.rtt_ns);
  CHECK(w.peers[2].grants > 0);
  CHECK(w.r.snapshot().virtual_queue_bytes > 0);
  CHECK(w.peers[2].grant.queue_us > 0);
}

TEST_CASE("cadence receiver: idle capacity is lent, and called back for a newcomer") {
  Port w;
  w.request(1, 20'000);  // a seventh of the port would do
  w.run(4 * w.p.rtt_ns);
  CHECK(w.rate(1) == w.lone_mbps());
  w.request(2, 50'000'000);
  w.run(6 * w.p.rtt_ns);
  CHECK(w.rate(2) + 1 >= plan_mbps(w.p, 2) / 4);  // the other has little left, and three shares
  CHECK(w.rate(1) + w.rate(2) <= plan_mbps(w.p, 2));
}

TEST_CASE("cadence receiver: a channel that keeps starting competes with itself only") {
  Port w;
  for (int i = 0; i < 40; ++i) {  // a start every RTT, over many windows
    w.request(1, 20'000, 20'000, kCapNoGrant);
    w.arrive(1, 20'000);
    w.run(w.p.rtt_ns);
  }
  CHECK(w.r.snapshot().start_budget_bytes == w.p.budget_bytes);
  w.request(2, 20'000, 20'000, kCapNoGrant);
  w.request(3, 20'000, 20'000, kCapNoGrant);
  w.run(1);
  CHECK(w.r.snapshot().start_budget_bytes == w.p.budget_bytes / 3);
}

TEST_CASE("cadence receiver: marks count against the path only while the port is not full") {
  Port w;
  w.request(1, 5'000'000'000);
  w.run(8 * w.p.rtt_ns);
  for (int i = 0; i < 20; ++i) {
    w.arrive(1, bytes_at(99'000, 2 * w.p.rtt_ns), 14);
    w.run(2 * w.p.rtt_ns);
  }
  CHECK(w.paths == 0);
  for (int i = 0; i < 4; ++i) {  // half the port, every packet marked: quick adapt
    w.arrive(1, bytes_at(50'000, 2 * w.p.rtt_ns), 14);
    w.run(2 * w.p.rtt_ns);
  }
  CHECK(w.paths >= 1);
  CHECK(w.last_path.quick_adapt_mbps == Approx(50'000).epsilon(0.3));
  w.run(20 * w.p.rtt_ns);
  for (int i = 0; i < 8; ++i) {  // a few marked: alpha
    w.arrive(1, bytes_at(50'000, 2 * w.p.rtt_ns), 3);
    w.run(2 * w.p.rtt_ns);
  }
  CHECK(w.last_path.quick_adapt_mbps == 0);
  CHECK(w.last_path.alpha_q16 > 65536 / 20);
  CHECK(w.last_path.alpha_q16 < 65536 / 2);
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

// Credit for GRANTs is used up by answers. What says to a channel that nothing is granted to it is
// none of those that it waits for: it asks every other round trip, which is more often than credit
// for an answer comes.
TEST_CASE("cadence receiver: I4, a channel that asks again does not put off its own grant") {
  Port w({{"control_share", 0.001}});
  w.request(1, 50'000'000);
  w.run(4 * w.p.rtt_ns);
  for (unsigned i = 0; i < 5 * w.p.max_active; ++i) {  // a full credit and a quarter
    w.request(2, 0);
    w.poll();
  }
  w.peers[2].request.demand_bytes = 50'000'000;
  const std::int64_t debt = w.p.max_active * w.p.control_ns;
  const std::int64_t begin = w.now;
  while (w.rate(2) == 0 && w.now - begin < 4 * debt) {
    w.request(2, 50'000'000);
    w.run(2 * w.p.rtt_ns, false);
    w.echo(1);
  }
  CHECK(w.rate(2) > 0);
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
          w.request(id, 1 + random.below(50'000), random.below(60'000), kCapNoGrant);
          break;
        case 3:
          w.r.on_unaccounted_bytes(random.below(60'000));
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
