// The sending half that SIRD and Homa share: rounds, ceilings, what a REQUEST says and when.
#include "cc/grants/grant_channel.h"

#include "cc/homa/homa.h"
#include "cc/sird/sird.h"
#include "tests/unit/cc/grant_support.h"

namespace paceline::cc::test {
namespace {

constexpr std::int64_t kGrantRtt = 4'700;

// A channel of SIRD, whose engine is the test.
struct Bench {
  explicit Bench(const std::vector<ParamOverride>& overrides = {})
      : params(grant_params<Sird>("sird", overrides)) {
    Event e;
    e.now = Nanos{now};
    Sird::on_event(state, params, e, decision);
  }
  void event(Signal signal, Event e = {}) {
    e.signal = signal;
    e.now = Nanos{now};
    e.sent_total = sent;
    e.backlog_bytes = backlog;
    Sird::on_event(state, params, e, decision);
    REQUIRE(decision.wake_at.count > now);
    if (!decision.request) return;
    decision.request = false;
    ++requests;
    request = RequestMessage{};
    Sird::fill_request(state, params, e, request);
  }
  void post(std::uint64_t bytes) {
    backlog += bytes;
    Event e;
    e.message_bytes = bytes;
    event(Signal::message, e);
  }
  // Sends packets while the ceiling lets it; the last one says idle.
  std::uint64_t send(std::uint64_t most = ~std::uint64_t{0}) {
    std::uint64_t packets = 0;
    while (backlog > 0 && packets < most) {
      const std::uint64_t payload = std::min<std::uint64_t>(backlog, 4096);
      if (sent + payload + 82 > decision.ceiling) break;
      sent += payload + 82;
      backlog -= payload;
      ++packets;
    }
    if (packets > 0 && backlog == 0) event(Signal::idle);
    return packets;
  }
  void grant(std::uint64_t limit, std::uint32_t stamp, bool hold = false) {
    GrantMessage g;
    g.grant_seq = ++seq;
    g.limit_total = limit & kTotalMask;
    g.rate_mbps = hold ? 0 : 100'000;
    g.hold = hold;
    g.timestamp_echo_ns = stamp;
    Event e;
    e.grant = &g;
    event(Signal::grant, e);
  }
  void wake() {
    REQUIRE(decision.timed);
    now = decision.wake_at.count;
    event(Signal::tick);
  }

  Sird::Params params;
  Sird::State state{};
  Decision decision;
  RequestMessage request;
  unsigned requests = 0;
  std::uint64_t sent = 0;
  std::uint64_t backlog = 0;
  std::uint16_t seq = 0;
  std::int64_t now = 1'000'000;
};

TEST_CASE("grants: a message up to UnschT leaves at once and costs one REQUEST", "[grants]") {
  Bench b;
  b.post(20'000);
  CHECK(b.requests == 1);
  CHECK(b.request.demand_bytes >= 20'000 + 5 * 82);
  CHECK(b.request.unscheduled_total >= 20'000 + 5 * 82);
  CHECK(b.decision.urgent);
  CHECK(b.decision.rate == rate_from_gbps(100));
  CHECK(b.send() == 5);
  CHECK(b.requests == 1);  // nothing was granted, nothing is left: nobody need know
  CHECK(b.decision.limiter == Limiter::application);
  CHECK(b.decision.rate.bps == 0);
}

TEST_CASE("grants: a message above UnschT waits for a GRANT, and sends what that allows",
          "[grants]") {
  Bench b;
  b.post(1'000'000);
  CHECK(b.requests == 1);
  CHECK(b.request.unscheduled_total == 0);
  CHECK(b.decision.rate.bps == 0);
  CHECK(b.decision.limiter == Limiter::grant);
  CHECK(b.send() == 0);
  b.grant(3 * kPacket, b.request.timestamp_ns);
  CHECK(b.decision.rate == rate_from_gbps(100));
  CHECK(b.send() == 3);
  b.grant(2 * kPacket, b.request.timestamp_ns);  // a ceiling never falls
  CHECK(b.send() == 0);
  b.grant(5 * kPacket, b.request.timestamp_ns);
  CHECK(b.send() == 2);
  CHECK(b.requests == 1);
}

TEST_CASE("grants: what is not used when the backlog is gone is given back", "[grants]") {
  Bench b;
  b.post(100'000);
  b.grant(30 * kPacket, b.request.timestamp_ns);
  b.now += 2'000;
  CHECK(b.send() == 25);
  CHECK(b.requests == 2);
  CHECK(b.request.demand_bytes == 0);
  CHECK(b.request.sent_total == b.sent);
  CHECK(b.request.round == 1);
  // A GRANT that was in flight is void: the receiver took it back with the REQUEST.
  const auto old = static_cast<std::uint32_t>(b.now - 1'000);
  b.post(1'000'000);
  CHECK(b.requests == 3);
  b.grant(b.sent + 10 * kPacket, old);
  CHECK(b.send() == 0);
  b.grant(b.sent + 2 * kPacket, b.request.timestamp_ns);
  CHECK(b.send() == 2);
}

TEST_CASE("grants: an idle channel that is granted something says that it needs nothing",
          "[grants]") {
  Bench b;
  b.post(4'000);
  b.send();
  CHECK(b.requests == 1);
  b.now += kGrantRtt;
  b.grant(b.sent + 5 * kPacket, static_cast<std::uint32_t>(b.now));
  CHECK(b.requests == 2);
  CHECK(b.request.demand_bytes == 0);
  b.grant(b.sent + 6 * kPacket, static_cast<std::uint32_t>(b.now));
  CHECK(b.requests == 2);  // once per round trip
}

TEST_CASE("grants: who loses data drops the ceiling and asks anew", "[grants]") {
  Bench b;
  b.post(1'000'000);
  b.grant(20 * kPacket, b.request.timestamp_ns);
  CHECK(b.send(10) == 10);
  b.now += 2 * kGrantRtt;
  b.backlog += 5 * 4096;  // goes out again
  Event e;
  e.lost_bytes = 5 * kPacket;
  b.event(Signal::nack, e);
  CHECK(b.request.lost);
  CHECK(b.request.round == 1);
  CHECK(b.request.sent_total == 10 * kPacket);
  CHECK(b.send() == 0);
  const unsigned before = b.requests;
  b.event(Signal::nack, e);  // once per round trip
  CHECK(b.requests == before);
  b.grant(b.sent + kPacket, b.request.timestamp_ns);
  CHECK(b.send() == 1);
}

TEST_CASE("grants: a short message behind a long one may go on top of what is granted",
          "[grants]") {
  Bench b;
  b.post(1'000'000);
  b.grant(kPacket, b.request.timestamp_ns);
  CHECK(b.send() == 1);
  b.now += kGrantRtt;
  b.post(8'000);
  CHECK(b.request.unscheduled_total >= 8'000 + 2 * 82);
  CHECK(b.send() >= 1);
  // Together never more than a path's bytes.
  for (int i = 0; i < 20; ++i) b.post(50'000);
  CHECK(b.decision.ceiling - b.sent <= b.params.port.prefix_bytes);
}

TEST_CASE("grants: without any answer the fallback takes over, and a GRANT ends it", "[grants]") {
  Bench b;
  b.post(1'000'000);
  for (int i = 0; i < 64 && !b.decision.fallback; ++i) b.wake();
  CHECK(b.decision.fallback);
  CHECK(b.decision.ceiling == kUnlimited);
  // 8 that were not answered, at intervals that double from two round trips: 2 (2^9 - 1).
  CHECK(b.requests >= 9);
  CHECK(b.now - 1'000'000 < 1100 * kGrantRtt);
  b.wake();
  CHECK(b.decision.fallback);  // keeps asking
  b.grant(b.sent + 2 * kPacket, b.request.timestamp_ns);
  CHECK_FALSE(b.decision.fallback);
  CHECK(b.send() == 2);
}

TEST_CASE("grants: told to wait, a channel waits for ever", "[grants]") {
  Bench b;
  b.post(1'000'000);
  for (int i = 0; i < 100; ++i) {
    b.wake();
    b.grant(b.sent, b.request.timestamp_ns, true);
    REQUIRE_FALSE(b.decision.fallback);
  }
  // At ever longer intervals, but for what the GRANTs set back: they raised nothing.
  CHECK(b.now - 1'000'000 > 50'000'000);
}

TEST_CASE("grants: csn is told once per round trip while there is demand", "[grants]") {
  Bench b;
  b.post(1'000'000);
  b.grant(10 * kPacket, b.request.timestamp_ns);
  UplinkShare share;
  share.congested = true;
  Event e;
  e.share = &share;
  b.event(Signal::share, e);
  CHECK(b.requests == 1);
  b.wake();
  CHECK(b.requests == 2);
  CHECK(b.request.congested);
  CHECK(b.now - 1'000'000 >= kGrantRtt);
}

TEST_CASE("grants: small messages are reckoned with all their packets", "[grants]") {
  Bench b;
  for (int i = 0; i < 100; ++i) b.post(64);
  b.now += kGrantRtt;
  b.wake();
  // 100 packets of 64 + 82 bytes.
  CHECK(b.request.demand_bytes >= 100 * 146);
  CHECK(b.request.demand_bytes < 100 * (146 + 40));
}

TEST_CASE("homa: a long message begins with its prefix", "[grants]") {
  const Homa::Params p = grant_params<Homa>("homa");
  Homa::State s{};
  Decision d;
  Event e;
  e.now = Nanos{1'000'000};
  Homa::on_event(s, p, e, d);
  e.signal = Signal::message;
  e.message_bytes = e.backlog_bytes = 10'000'000;
  Homa::on_event(s, p, e, d);
  CHECK(d.request);
  CHECK(d.ceiling == p.port.bdp_bytes);
  CHECK(d.urgent);
}

TEST_CASE("grants: a connection that is taken over begins with nothing but what is granted",
          "[grants]") {
  const Sird::Params p = grant_params<Sird>("sird");
  Sird::State s{};
  Decision d;
  Handover handover;
  handover.rate = rate_from_gbps(10);
  Event e;
  e.now = Nanos{1'000'000};
  e.sent_total = 50'000'000;
  e.handover = &handover;
  Sird::on_event(s, p, e, d);
  e.handover = nullptr;
  e.signal = Signal::message;
  e.message_bytes = e.backlog_bytes = 20'000;
  Sird::on_event(s, p, e, d);
  CHECK(d.request);
  CHECK(d.ceiling == e.sent_total);
  CHECK(d.rate.bps == 0);
}

}  // namespace
}  // namespace paceline::cc::test
