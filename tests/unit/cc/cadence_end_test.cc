// Grants that end ahead: the sender says so a round trip before its last byte, and the receiver's
// port goes on without a gap.
#include <catch2/catch.hpp>

#include "cc/cadence/cadence.h"
#include "cc/cadence/receiver/receiver.h"
#include "tests/unit/cc/cadence_port.h"
#include "tests/unit/cc/cadence_sender.h"

namespace paceline::cc {
namespace {

using Phase = Cadence::Phase;

// A bulk message of 10 MB on a grant of half the port, with `left` payload bytes unsent.
struct Nearly : Sender {
  explicit Nearly(std::uint64_t left, std::uint32_t granted = 50'000, std::uint16_t senders = 2) {
    post(10'000'000);
    send(4096);
    GrantMessage g = grant(1, granted);
    g.active_senders = senders;
    g.limit_total = 1ULL << 40;
    deliver(g);
    told = requests;
    send(backlog - left);
    tick();
  }
  std::uint64_t round_trip() const { return bytes_at(50'000, p.rtt_ns); }
  unsigned told = 0;
};

TEST_CASE("cadence end: what leaves within a round trip is told to need no grant any more") {
  Nearly before(100'000);
  CHECK(before.s.phase == Phase::granted);
  CHECK(before.requests == before.told);
  // Asked for exactly then.
  const std::uint64_t wire = message_wire_bytes(before.p, 100'000);
  CHECK(before.d.wake_bytes == wire - before.round_trip());

  Nearly w(20'000);
  CHECK(w.s.phase == Phase::ending);
  CHECK(w.requests == w.told + 1);
  CHECK(w.last.tx_cap_mbps == kCapNoGrant);
  CHECK(w.last.demand_bytes == message_wire_bytes(w.p, 20'000));
  CHECK(w.last.grant_echo == 1);
  // It goes on as it was, up to what it said.
  CHECK(mbps(w.d) == 50'000);
  CHECK(w.d.ceiling >= w.sent + message_wire_bytes(w.p, 20'000));
  CHECK(w.d.ceiling <= w.sent + message_wire_bytes(w.p, 20'000) + w.p.packet_bytes);
  w.send(20'000);
  CHECK(w.s.phase == Phase::closing);
  CHECK(w.last.demand_bytes == 0);  // confirmed, should the first word have been lost
  CHECK(w.d.rate.bps == 0);
}

TEST_CASE("cadence end: nobody is told where nobody waits, or of little") {
  Nearly alone(20'000, 50'000, 1);
  CHECK(alone.s.phase == Phase::granted);
  Nearly little(2'000, 10'000);  // 4.68 us of 10 Gb/s are 5,850 bytes
  CHECK(little.s.phase == Phase::granted);
  CHECK(little.requests == little.told);
}

TEST_CASE("cadence end: a grant that was made before is void, and one made after is not used") {
  Nearly w(20'000);
  GrantMessage late = w.grant(2, 90'000);
  late.timestamp_echo_ns -= 1'000;
  w.now += 1'000;
  w.deliver(late);
  CHECK(w.s.phase == Phase::ending);
  CHECK(mbps(w.d) == 50'000);
  w.deliver(w.grant(3, 90'000));
  CHECK(mbps(w.d) == 50'000);
}

TEST_CASE("cadence end: a message that comes then asks, and what was left is charged") {
  Nearly w(20'000);
  const std::uint64_t announced = w.s.unscheduled_total;
  w.now += 500;
  w.post(5'000'000);
  CHECK(w.s.phase == Phase::requesting);
  CHECK(w.last.tx_cap_mbps == kCapUnlimited);
  CHECK(w.last.demand_bytes == message_wire_bytes(w.p, 5'020'000));
  CHECK(w.last.grant_echo == 0);
  const std::uint64_t charged = w.last.unscheduled_total - announced;
  CHECK(charged >= message_wire_bytes(w.p, 20'000));
  CHECK(w.d.ceiling == w.sent + charged);
  GrantMessage g = w.grant(2, 30'000);
  w.deliver(g);
  CHECK(w.s.phase == Phase::granted);
  w.send(40'000);
  w.tick();
  CHECK(mbps(w.d) == 30'000);
}

TEST_CASE("cadence end: who does not come to an end asks for another grant") {
  Nearly w(20'000);
  w.tick_at(w.now + 40 * w.p.rtt_ns);  // a path that was slower than the grant, or a packet lost
  CHECK(w.s.phase == Phase::requesting);
  CHECK(w.last.tx_cap_mbps == kCapUnlimited);
  CHECK(w.d.rate.bps == 0);
  w.deliver(w.grant(2, 30'000));
  CHECK(mbps(w.d) == 30'000);
}

TEST_CASE("cadence end: the receiver hands the rate on at once, and counts what still comes") {
  Port w;
  w.request(1, 50'000'000);
  w.request(2, 50'000'000);
  w.run(40 * w.p.rtt_ns);
  const std::uint64_t half = plan_mbps(w.p, 2) / 2;
  CHECK(w.rate(1) == Approx(double(half)).epsilon(0.01));
  CHECK(w.rate(2) == Approx(double(half)).epsilon(0.01));
  const std::uint64_t rest = bytes_at(half, w.p.rtt_ns);
  w.request(1, rest, 0, kCapNoGrant);
  CHECK(w.r.snapshot().committed_mbps == Approx(double(half)).epsilon(0.01));
  CHECK(w.r.snapshot().virtual_queue_bytes == 0);
  w.run(w.p.rtt_ns);
  CHECK(w.rate(2) >= 2 * half - half / 50);
}

TEST_CASE("cadence end: what still comes leaves no room for starts to drain") {
  const auto queue_after = [](std::uint64_t rest, std::uint32_t cap) {
    Port w;
    w.request(1, 50'000'000);
    w.request(2, 50'000'000);
    w.run(40 * w.p.rtt_ns);
    w.request(1, rest, 0, cap);
    w.request(2, 50'000'000, w.p.bdp_bytes);
    w.now += w.p.rtt_ns / 2;
    w.poll();
    return w.r.snapshot().virtual_queue_bytes;
  };
  const CadenceParams p = cadence_params_100g();
  const std::uint64_t rest = bytes_at(plan_mbps(p, 2) / 2, p.rtt_ns);
  const std::uint64_t ahead = queue_after(rest, kCapNoGrant);
  const std::uint64_t over = queue_after(0, kCapUnlimited);
  CHECK(ahead >= p.bdp_bytes * 98 / 100);  // but for what the margin carries
  CHECK(over <= ahead - p.bdp_bytes / 5);  // half the port for half a round trip
}

TEST_CASE("cadence end: the margin is for eight senders and more, and less of it for fewer") {
  const CadenceParams p = cadence_params_100g();
  const std::uint32_t margin = p.link_mbps - p.eta_mbps;
  CHECK(plan_mbps(p, 0) == p.link_mbps - margin / 4);
  CHECK(plan_mbps(p, 1) == p.link_mbps - margin / 4);
  CHECK(plan_mbps(p, 2) == p.link_mbps - margin / 4);
  CHECK(plan_mbps(p, 4) == p.link_mbps - margin / 2);
  CHECK(plan_mbps(p, 8) == p.eta_mbps);
  CHECK(plan_mbps(p, 4096) == p.eta_mbps);
}

}  // namespace
}  // namespace paceline::cc
