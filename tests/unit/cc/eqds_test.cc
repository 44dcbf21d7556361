// The sender's half of EQDS: events in, decisions out; and the arbiter of speculative bytes.
#include "cc/eqds/eqds.h"

#include <array>
#include <catch2/catch.hpp>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/eqds/sender.h"

namespace paceline::cc {
namespace {

constexpr std::int64_t kT = 4680;

EqdsParams sender_params() {
  std::vector<double> values;
  for (const ParamSpec& spec : eqds_info().params) values.push_back(spec.default_value);
  return make_eqds_params(values, PortFacts{rate_from_gbps(100), 4096, 4170, kT});
}

struct Channel {
  EqdsParams p = sender_params();
  Eqds::State s{};
  Decision d{};
  Event e{};
  RequestMessage request{};
  unsigned requests = 0;
  std::int64_t now = 1'000'000;

  explicit Channel(const Handover* handover = nullptr) {
    e.handover = handover;
    event(Signal::start);
    e.handover = nullptr;
  }
  void event(Signal signal) {
    e.now = Nanos{now};
    e.signal = signal;
    d.wake_at = kNeverNanos;
    Eqds::on_event(s, p, e, d);
    if (d.request) {
      request = RequestMessage{};
      Eqds::fill_request(s, p, e, request);
      ++requests;
    }
    e.sent_bytes = e.message_bytes = 0;
  }
  void post(std::uint64_t bytes) {
    e.backlog_bytes += bytes;
    e.message_bytes = bytes;
    event(Signal::message);
  }
  void answer(std::uint32_t start) {
    UplinkShare share;
    share.cap_mbps = 100'000;
    share.answers_start = true;
    share.start_bytes = start;
    e.share = &share;
    event(Signal::share);
    e.share = nullptr;
  }
  void send(std::uint64_t packets) {
    e.sent_total += packets * 4170;
    e.sent_bytes += packets * 4170;
    e.backlog_bytes -= std::min<std::uint64_t>(e.backlog_bytes, packets * 4096);
  }
  void grant(std::uint64_t limit, bool credit = true, std::uint32_t lease_us = 0) {
    GrantMessage g;
    g.credit = credit;
    g.grant_seq = static_cast<std::uint16_t>(s.seen_seq + 1);
    g.limit_total = limit;
    g.lease_us = lease_us;
    g.rate_mbps = 20'000;
    e.grant = &g;
    event(Signal::grant);
    e.grant = nullptr;
  }
  void wake() {
    REQUIRE(d.timed);
    REQUIRE(d.wake_at != kNeverNanos);
    now = d.wake_at.count;
    event(Signal::tick);
  }
};

TEST_CASE("eqds: a message speculates with a window, and asks for the rest", "[cc][eqds]") {
  Channel c;
  c.post(1'000'000);
  CHECK(c.requests == 0);  // the arbiter first
  CHECK(Eqds::uplink_want(c.s, c.p).asks_start);
  CHECK(Eqds::uplink_want(c.s, c.p).start_bytes == c.p.first_window_bytes);
  CHECK(c.d.ceiling == 0);
  c.answer(c.p.first_window_bytes);
  CHECK(c.requests == 1);
  CHECK(c.d.ceiling == 87'750);
  CHECK(c.d.rate == rate_from_gbps(100));
  CHECK(c.request.unscheduled_total == 87'750);
  CHECK(c.request.demand_bytes >= 1'000'000 + 245 * 74);
  CHECK(c.request.tx_cap_mbps == kCapUnlimited);
}

TEST_CASE("eqds: the window is earned again in time, and not after a loss", "[cc][eqds]") {
  Channel c;
  c.post(80'000);
  c.answer(Eqds::uplink_want(c.s, c.p).start_bytes);
  c.send(20);
  c.event(Signal::idle);
  c.now += 4 * kT;  // half of 8 round trips
  c.post(1'000'000);
  CHECK(Eqds::uplink_want(c.s, c.p).start_bytes < 87'750 * 2 / 3);
  CHECK(Eqds::uplink_want(c.s, c.p).start_bytes > 87'750 / 2 - 4170);
  c.answer(0);
  c.event(Signal::idle);
  c.e.backlog_bytes = 4096;
  c.e.lost_bytes = c.e.trimmed_bytes = 4170;
  c.event(Signal::nack);
  // What is lost waits for credit, and is asked for.
  CHECK_FALSE(Eqds::uplink_want(c.s, c.p).asks_start);
  CHECK(c.s.window_bytes == 0);
}

TEST_CASE("eqds: credit is cumulative, and used at line rate", "[cc][eqds]") {
  Channel c;
  c.post(1'000'000);
  c.answer(0);
  c.grant(16'680);
  CHECK(c.d.ceiling == 16'680);
  c.grant(50'040);  // the one between was lost
  CHECK(c.d.ceiling == 50'040);
  c.grant(33'360);  // and comes late
  CHECK(c.d.ceiling == 50'040);
  CHECK(c.d.rate == rate_from_gbps(100));
  // A grant of another algorithm carries a rate and a ceiling.
  c.grant(60'000, false);
  CHECK(c.d.rate == rate_from_mbps(20'000));
  CHECK(c.d.ceiling == 60'000);
  // No receiver gives a gigabyte for a megabyte.
  c.grant(1'000'000'000);
  CHECK(c.d.ceiling == 60'000);
}

TEST_CASE("eqds: unanswered REQUESTs are repeated, rarer, and then the fallback decides",
          "[cc][eqds]") {
  Channel c;
  c.post(1'000'000);
  c.answer(0);
  const std::int64_t from = c.now;
  c.wake();
  CHECK(c.now - from == 2 * kT);
  CHECK(c.requests == 2);
  for (int i = 0; i < 20 && !c.d.fallback; ++i) c.wake();
  CHECK(c.d.fallback);
  CHECK(c.requests == 1 + c.p.probe_limit + 1);
  CHECK(c.now - from < 200 * kT);
  CHECK(c.d.ceiling == kUnlimited);
  CHECK(c.d.rate == rate_from_mbps(c.p.fallback_mbps));
  const unsigned before = c.requests;
  c.wake();  // it keeps asking
  CHECK(c.requests == before + 1);
  c.e.sent_total += 100 * 4170;
  c.grant(c.e.sent_total + 16'680);
  CHECK_FALSE(c.d.fallback);
  CHECK(c.d.ceiling == c.e.sent_total + 16'680);
}

TEST_CASE("eqds: a receiver that says when it will pull is believed", "[cc][eqds]") {
  Channel c;
  c.post(1'000'000);
  c.answer(0);
  c.grant(0, true, 500);
  CHECK(c.d.wake_at.count == c.now + 500'000);
  c.wake();
  CHECK(c.requests == 2);
}

TEST_CASE("eqds: news of demand is told twice a round trip at most", "[cc][eqds]") {
  Channel c;
  c.post(8192);
  c.answer(3 * 4170);
  CHECK(c.requests == 1);
  for (int i = 0; i < 10; ++i) {
    c.now += 100;
    c.post(8192);
  }
  CHECK(c.requests == 1);
  c.wake();
  CHECK(c.requests == 2);
  CHECK(c.request.demand_bytes >= 22 * 4170);
  CHECK(c.now >= 1'000'000 + kT / 2);
}

TEST_CASE("eqds: credit that the estimate says is enough, and is not, is asked for", "[cc][eqds]") {
  Channel c;
  c.post(4096);
  c.answer(Eqds::uplink_want(c.s, c.p).start_bytes);
  REQUIRE(c.requests == 1);
  // Nothing leaves: the packet is longer than anybody thought.
  c.wake();
  c.wake();
  CHECK(c.requests == 2);
  CHECK(c.request.demand_bytes >= 2 * 4170);
  // While something leaves nothing more is asked.
  Channel other;
  other.post(80'000);
  other.answer(Eqds::uplink_want(other.s, other.p).start_bytes);
  for (int i = 0; i < 3; ++i) {
    other.send(2);
    other.wake();
  }
  CHECK(other.requests == 1);
}

TEST_CASE("eqds: many short messages are more than their payload", "[cc][eqds]") {
  Channel c;
  for (int i = 0; i < 100; ++i) c.post(64);
  c.answer(0);
  CHECK(c.request.demand_bytes >= 100 * (64 + 74));
}

TEST_CASE("eqds: a connection taken over speculates no faster than it went", "[cc][eqds]") {
  Handover handover;
  handover.rate = rate_from_gbps(10);
  Channel c(&handover);
  c.post(1'000'000);
  CHECK(Eqds::uplink_want(c.s, c.p).start_bytes == 10'000 * kT / 8000);
}

TEST_CASE("eqds arbiter: one and a half paths of speculation for all who start together",
          "[cc][eqds]") {
  const EqdsParams p = sender_params();
  EqdsSender arbiter(p);
  UplinkWant want;
  want.active = want.asks_start = true;
  want.start_bytes = p.first_window_bytes;
  for (std::uint32_t i = 0; i < 4; ++i) arbiter.update(Nanos{1'000'000}, i, want);
  std::array<ShareOutput, 16> out;
  const std::size_t n = arbiter.poll(Nanos{1'000'000}, out);
  REQUIRE(n == 4);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < n; ++i) {
    CHECK(out[i].share.answers_start);
    CHECK(out[i].share.start_bytes >= p.packet_bytes);
    CHECK(out[i].share.cap_mbps == 25'000);
    sum += out[i].share.start_bytes;
  }
  CHECK(sum <= p.first_window_bytes);
  CHECK(sum > p.first_window_bytes - 4 * p.packet_bytes);
  CHECK(arbiter.check_invariants(Nanos{1'000'000}) == "");
  CHECK(arbiter.next_wake() == kNeverNanos);
  // Later there is room again.
  arbiter.update(Nanos{1'000'000 + 3 * kT}, 4, want);
  REQUIRE(arbiter.poll(Nanos{1'000'000 + 3 * kT}, out) == 1);
  CHECK(out[0].share.start_bytes == p.first_window_bytes);
  // Contexts that have gone do not count; nor is one answered that has.
  for (std::uint32_t i = 0; i < 4; ++i) arbiter.forget(Nanos{2'000'000}, i);
  arbiter.update(Nanos{2'000'000}, 4, want);
  arbiter.forget(Nanos{2'000'000}, 4);
  CHECK(arbiter.poll(Nanos{2'000'000}, out) == 0);
  CHECK(arbiter.check_invariants(Nanos{2'000'000}) == "");
}

}  // namespace
}  // namespace paceline::cc
