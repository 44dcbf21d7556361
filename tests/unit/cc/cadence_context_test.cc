// The sender's state machine, rule by rule.
#include <catch2/catch.hpp>

#include "cc/cadence/cadence.h"
#include "tests/unit/cc/cadence_sender.h"

namespace paceline::cc {
namespace {

using Phase = Cadence::Phase;

TEST_CASE("cadence: the table's defaults lie within their ranges and the state fits") {
  for (const ParamSpec& spec : cadence_info().params) {
    CAPTURE(std::string(spec.name));
    CHECK(spec.min <= spec.default_value);
    CHECK(spec.default_value <= spec.max);
    CHECK_FALSE(spec.meaning.empty());
    CHECK_FALSE(spec.source.empty());
  }
  CHECK(cadence_info().proactive);
  CHECK(cadence_info().key == ContextKey::per_peer_class);
}

TEST_CASE("cadence: a small message leaves at line rate, without any control message") {
  Sender w;
  w.post(20'000);
  CHECK(w.requests == 0);
  CHECK(mbps(w.d) == 100'000);
  CHECK(w.d.urgent);
  CHECK(w.d.ceiling >= message_wire_bytes(w.p, 20'000) + 16);  // RETH
  w.send(20'000);
  CHECK(w.s.phase == Phase::idle);
  CHECK(w.requests == 0);
  CHECK(w.d.rate.bps == 0);
}

TEST_CASE("cadence: a bulk message to an unknown crowd waits for its grant") {
  Sender w;
  w.post(10'000'000);
  CHECK(w.requests == 1);
  CHECK(w.last.tx_cap_mbps == kCapUnlimited);
  CHECK(w.last.unscheduled_total == 0);
  CHECK(w.last.demand_bytes == message_wire_bytes(w.p, 10'000'000));
  CHECK(w.d.rate.bps == 0);
  CHECK(w.d.limiter == Limiter::grant);

  w.deliver(w.grant(1, 40'000));
  CHECK(mbps(w.d) == 40'000);
  CHECK(w.d.ceiling == w.sent + 1'000'000);
  CHECK(w.d.limiter == Limiter::grant);
  CHECK_FALSE(w.d.urgent);
}

TEST_CASE("cadence: start bytes shrink with size, with what is under way, with the degree") {
  const auto start_of = [](std::uint64_t message, std::uint64_t flying) {
    Sender w;
    if (flying > 0) {
      w.post(flying);
      w.send(flying);
      w.inflight = flying;
    }
    w.post(message);
    return w.s.start_end - w.sent;
  };
  const CadenceParams p = cadence_params_100g();
  CHECK(start_of(p.small_bytes / 2, 0) >= message_wire_bytes(p, p.small_bytes / 2));
  CHECK(start_of(3 * p.small_bytes / 2, 0) < p.small_bytes / 2);
  CHECK(start_of(3 * p.small_bytes / 2, 0) > p.packet_bytes);
  CHECK(start_of(10'000'000, 0) == 0);
  // A start that is not acknowledged yet counts as part of the message, and is in flight already.
  CHECK(start_of(10'000, 20'000) >= message_wire_bytes(p, 10'000));
  CHECK(start_of(p.small_bytes * 3 / 4, p.small_bytes * 3 / 4) < p.packet_bytes);

  Sender hinted;
  hinted.backlog = 40'000;
  hinted.event(
      {.message_bytes = 40'000, .hint_degree = 10, .hint_kind = 2, .signal = Signal::message});
  CHECK(hinted.last.unscheduled_total == hinted.p.bdp_bytes / 10);
  CHECK(mbps(hinted.d) == hinted.p.eta_mbps / 10);
  CHECK(hinted.last.hint);
  CHECK(hinted.last.hint_degree == 10);
}

TEST_CASE("cadence: the receiver's peers share a BDP of starts; of many each asks first") {
  const auto start_of = [](std::uint32_t peers, std::uint64_t message) {
    Sender w;
    w.event({.signal = Signal::tick, .peer_count_hint = peer_count_hint_of(peers)});
    w.post(message);
    return w.s.start_end;
  };
  const CadenceParams p = cadence_params_100g();
  CHECK(start_of(1, 10'000'000) == p.bdp_bytes);
  CHECK(start_of(2, 10'000'000) == p.bdp_bytes);
  for (const std::uint32_t peers : {3U, 5U, 8U}) {
    CAPTURE(peers);
    const std::uint64_t each = start_of(peers, 10'000'000);
    CHECK(each > 0);
    CHECK(each % p.packet_bytes == 0);
    CHECK(each * peers <= p.bdp_bytes);
  }
  CHECK(start_of(63, 10'000'000) == 0);
  // What is small is never asked for, and one byte more does not make it wait.
  CHECK(start_of(63, 40'000) >= message_wire_bytes(p, 40'000));
  CHECK(start_of(63, p.small_bytes) > p.small_bytes / 2);
}

TEST_CASE("cadence: the newest word on the receiver's peers counts, and silence changes nothing") {
  Sender w;
  w.event({.signal = Signal::tick, .peer_count_hint = peer_count_hint_of(1)});
  w.post(10'000'000);
  w.send(4096);
  GrantMessage g = w.grant(1, 50'000);
  g.peer_count_hint = peer_count_hint_of(100);
  w.deliver(g);
  CHECK(w.s.peer_count_hint == peer_count_hint_of(100));
  g = w.grant(2, 50'000);  // from one that does not say it
  w.deliver(g);
  w.tick();
  CHECK(w.s.peer_count_hint == peer_count_hint_of(100));
}

TEST_CASE("cadence: among others, a grant ends with the backlog") {
  Sender w;
  w.post(1'000'000);
  w.deliver(w.grant(1, 25'000));  // four active senders
  w.send(1'000'000);
  CHECK(w.s.phase == Phase::closing);
  CHECK(w.last.demand_bytes == 0);
}

TEST_CASE("cadence: a short message goes ahead of others of its channel once in 8 RTT") {
  Sender w;
  w.post(10'000'000);
  w.deliver(w.grant(1, 30'000));
  w.send(4096 * 100);
  for (const int rtts : {9, 7, 1}) {
    w.now += rtts * w.p.rtt_ns;
    const std::uint64_t before = w.s.start_end;
    w.post(20'000);
    CHECK((w.s.start_end > before) == (rtts != 7));
  }
}

TEST_CASE("cadence: a decrease is confirmed at once, an increase by the next REQUEST") {
  Sender w;
  w.post(10'000'000);
  w.send(4096);
  w.deliver(w.grant(1, 20'000));
  const unsigned after_first = w.requests;
  w.now += 5000;
  w.deliver(w.grant(2, 50'000));
  CHECK(w.requests == after_first);
  w.now += 5000;
  w.deliver(w.grant(3, 10'000));
  CHECK(w.requests == after_first + 1);
  CHECK(w.last.grant_echo == 3);
  CHECK(mbps(w.d) == 10'000);
}

TEST_CASE("cadence: grants older than the newest are ignored, across the wrap of the number") {
  Sender w;
  w.post(10'000'000);
  w.send(4096);
  w.deliver(w.grant(0xFFFF, 20'000));
  w.deliver(w.grant(0xFFFE, 90'000));
  CHECK(mbps(w.d) == 20'000);
  w.deliver(w.grant(1, 30'000));
  CHECK(mbps(w.d) == 30'000);
  w.deliver(w.grant(0xFFFF, 20'000));
  CHECK(mbps(w.d) == 30'000);
}

TEST_CASE(
    "cadence: a repeated grant renews the lease; it asks for a new confirmation when the "
    "receiver has not seen one") {
  Sender w;
  w.post(10'000'000);
  w.deliver(w.grant(1, 50'000));
  w.now += 20'000;
  GrantMessage lower = w.grant(2, 10'000);
  w.deliver(lower);
  const unsigned confirmed = w.requests;
  const std::int64_t lease_end = w.s.lease_end;
  w.now += 10'000;
  w.deliver(lower);  // answers a REQUEST from before the decrease was taken
  CHECK(w.requests == confirmed + 1);
  CHECK(w.s.lease_end == lease_end + 10'000);
  w.now += 10'000;
  w.deliver(w.grant(2, 10'000));  // answers the confirmation
  CHECK(w.requests == confirmed + 1);
}

TEST_CASE("cadence: a delayed increase takes effect when it says") {
  Sender w;
  w.post(10'000'000);
  w.send(4096);
  GrantMessage g = w.grant(1, 50'000);
  g.effective_delay_us = 3;
  w.deliver(g);
  CHECK(w.d.rate.bps == 0);
  CHECK(w.d.wake_at.count == w.now + 3000);
  w.tick_at(w.now + 3000);
  CHECK(mbps(w.d) == 50'000);
}

TEST_CASE(
    "cadence: going idle gives the grant up first, repeats until confirmed, and makes grants "
    "on their way void") {
  Sender w;
  w.post(10'000'000);
  const std::uint32_t old_stamp = w.last.timestamp_ns;
  w.now += 10'000;
  w.deliver(w.grant(1, 50'000));
  w.now += 10'000;
  w.send(10'000'000);
  CHECK(w.s.phase == Phase::closing);
  CHECK(w.last.demand_bytes == 0);
  CHECK(w.last.grant_echo == 0);
  const unsigned told = w.requests;
  w.tick_at(w.d.wake_at.count);
  CHECK(w.requests == told + 1);
  CHECK(w.last.demand_bytes == 0);

  // A new message; a grant computed before the give-up arrives late.
  w.now += 1000;
  w.post(10'000'000);
  w.send(4096);
  w.tick();
  GrantMessage stale = w.grant(2, 80'000);
  stale.timestamp_echo_ns = old_stamp;
  w.deliver(stale);
  CHECK(w.d.rate.bps == 0);
  w.deliver(w.grant(3, 30'000));
  CHECK(mbps(w.d) == 30'000);
}

TEST_CASE("cadence: the confirmation of a give-up ends its repetition") {
  Sender w;
  w.post(10'000'000);
  w.deliver(w.grant(1, 50'000));
  w.now += 10'000;
  w.send(10'000'000);
  GrantMessage none = w.grant(2, 0);
  w.deliver(none);
  CHECK(w.s.phase == Phase::idle);
  CHECK_FALSE(w.d.timed);
}

TEST_CASE("cadence: I5, an expired lease halves the rate per RTT down to R_fb, then the fallback") {
  Sender w;
  w.post(100'000'000);
  w.send(4096);
  w.deliver(w.grant(1, 98'000));
  const std::int64_t lease_end = w.s.lease_end;
  std::uint64_t previous = mbps(w.d);
  while (w.s.phase != Phase::fallback) {
    REQUIRE(w.d.timed);
    REQUIRE(w.d.wake_at.count > w.now);
    w.tick_at(w.d.wake_at.count);
    REQUIRE(mbps(w.d) <= previous);
    previous = mbps(w.d);
    REQUIRE(w.now < lease_end + 200 * w.p.rtt_ns);
    if (w.now > lease_end) {
      // Not above what halving per RTT leaves, not below R_fb.
      const std::int64_t halvings = 1 + (w.now - lease_end) / w.p.rtt_ns;
      const std::uint64_t bound =
          halvings < 20 ? std::max<std::uint64_t>(98'000U >> halvings, w.p.fallback_mbps)
                        : w.p.fallback_mbps;
      REQUIRE(mbps(w.d) <= bound);
      REQUIRE(mbps(w.d) >= w.p.fallback_mbps);
    }
  }
  CHECK(w.d.fallback);
  CHECK(mbps(w.d) == w.p.fallback_mbps);
  CHECK(w.d.ceiling == kUnlimited);

  // It still probes, ever more slowly, up to a millisecond.
  const std::int64_t first = w.d.wake_at.count - w.now;
  for (int i = 0; i < 20; ++i) w.tick_at(w.d.wake_at.count);
  CHECK(w.d.wake_at.count - w.now > first);
  CHECK(w.d.wake_at.count - w.now <= 1'000'000);

  // A grant takes control back.
  w.now += 100;
  w.deliver(w.grant(2, 25'000));
  CHECK_FALSE(w.d.fallback);
  CHECK(mbps(w.d) == 25'000);
  CHECK(w.d.ceiling != kUnlimited);
  CHECK(w.last.grant_echo == 2);
}

TEST_CASE("cadence: HOLD is rate 0 with a lease, and is asked about again when it expires") {
  Sender w;
  w.post(10'000'000);
  w.send(4096);
  GrantMessage hold = w.grant(1, 0);
  hold.hold = true;
  w.deliver(hold);
  CHECK(w.s.phase == Phase::granted);
  CHECK(w.d.rate.bps == 0);
  const unsigned before = w.requests;
  w.tick_at(w.s.lease_end);
  CHECK(w.requests == before + 1);
  CHECK(w.d.rate.bps == 0);
}

TEST_CASE("cadence: a revoke drops the grant and asks anew") {
  Sender w;
  w.post(10'000'000);
  w.deliver(w.grant(1, 50'000));
  w.send(4096);
  w.now += 1000;
  GrantMessage g = w.grant(2, 0);
  g.revoke = true;
  w.deliver(g);
  CHECK(w.d.rate.bps == 0);
  CHECK(w.last.grant_echo == 0);
  CHECK(w.last.demand_bytes > 0);
  w.deliver(w.grant(3, 5'000));
  CHECK(mbps(w.d) == 5'000);
}

TEST_CASE("cadence: a timeout cuts the path rate and a lost tail asks for start bytes") {
  Sender w;
  w.post(20'000);
  w.send(20'000);
  CHECK(w.s.phase == Phase::idle);
  w.backlog = 4096;
  w.now += 500'000;
  w.event({.lost_bytes = 4096, .signal = Signal::timeout});
  CHECK(w.requests == 0);
  CHECK(w.d.ceiling > w.sent);
  CHECK(mbps(w.d) == 70'000);
}

TEST_CASE("cadence: a REQUEST that stays unanswered is repeated, then the fallback takes over") {
  Sender w;
  w.post(10'000'000);
  w.send(4096);
  for (int i = 0; i < 40 && !w.d.fallback; ++i) w.tick_at(w.d.wake_at.count);
  CHECK(w.d.fallback);
  CHECK(w.requests == w.p.probe_limit + 2);
}

TEST_CASE("cadence: start bytes that turn out not to suffice lead to a grant, not to a stall") {
  Sender w;
  w.uplink_room = 8340;  // the arbiter gives less than was asked
  w.post(20'000);
  CHECK(w.requests == 1);
  Sender covered;
  covered.post(20'000);
  CHECK(covered.requests == 0);
  REQUIRE(covered.d.timed);
  covered.tick_at(covered.d.wake_at.count);  // 8 RTT later the backlog is still there
  CHECK(covered.requests == 1);
}

TEST_CASE(
    "cadence: a short message on a granted channel adds its bytes once in eight round trips") {
  Sender w;
  w.post(10'000'000);
  w.deliver(w.grant(1, 10'000));
  w.send(4096);
  w.now += 50'000;
  w.deliver(w.grant(1, 10'000));
  const std::uint64_t before = w.sent;
  w.post(8'000);
  const std::uint64_t added = w.s.start_end - before;
  CHECK(added >= 2 * message_wire_bytes(w.p, 8'000));
  CHECK(mbps(w.d) == 100'000);
  CHECK(w.d.wake_bytes == added);
  w.post(8'000);
  CHECK(w.s.start_end - before == added);
  w.sent += added;
  w.tick();
  CHECK(mbps(w.d) == 10'000);
}

TEST_CASE("cadence: the ceiling never falls while the grant lasts, and start bytes widen it") {
  Sender w;
  w.post(10'000'000);
  w.send(4096);
  w.deliver(w.grant(1, 10'000));
  const std::uint64_t ceiling = w.d.ceiling;
  GrantMessage g = w.grant(1, 10'000);
  g.limit_total = ceiling - 500'000;
  w.deliver(g);
  CHECK(w.d.ceiling == ceiling);
  w.now += 50'000;
  const std::uint64_t before = w.s.start_end;
  w.post(8'000);
  CHECK(w.d.ceiling > ceiling);
  CHECK(w.s.start_end > before);
}

TEST_CASE("cadence: a handover starts no faster than it ran") {
  Sender w;
  w.s = Cadence::State{};
  const Handover handover{.rate = rate_from_gbps(10)};
  w.backlog = 40'000;
  w.event({.signal = Signal::start, .handover = &handover});
  CHECK(mbps(w.d) == 10'000);
}

}  // namespace
}  // namespace paceline::cc
