// The host's parts of a port whose plug-in has rates, and senders that are numbers, no engine:
// which REQUESTs and GRANTs pass, what is counted, and what ends in quarantine.

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "cc/dispatch.h"
#include "cc/plugin/plugin.h"
#include "cc/plugin/rates/context.h"
#include "cc/plugin/rates/downlink.h"
#include "cc/plugin/rates/uplink.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/cc/grant_support.h"

namespace paceline::cc::plugin {
namespace {

constexpr std::uint32_t kLinkMbps = 100'000;
constexpr std::int64_t kRateRtt = 4'700;

// What the plug-in under test does. Set before a call, as a table of C has no room for a closure.
struct RatesActs {
  std::function<void(const paceline_cc_item&)> event;
  std::function<void(paceline_cc_uplink&)> uplink;
  std::function<void(paceline_cc_downlink&, paceline_cc_channel&)> request;
  std::function<void(paceline_cc_downlink&)> round;
  std::function<void(paceline_cc_channel&, paceline_cc_rate_grant&)> grant;
};
RatesActs acts;

void act_events(const paceline_cc_item* items, std::uint32_t) { acts.event(*items); }
void act_fill_request(const paceline_cc_item* item, paceline_cc_request* r) {
  r->demand_bytes = item->event->backlog_bytes;
}
void act_want(const paceline_cc_item* item, paceline_cc_want* w) {
  w->left_bytes = item->event->backlog_bytes;
  w->active = w->left_bytes != 0 ? 1 : 0;
}
void act_uplink(paceline_cc_uplink* u) { acts.uplink(*u); }
void act_request(paceline_cc_downlink* d, paceline_cc_channel* c) { acts.request(*d, *c); }
void act_round(paceline_cc_downlink* d) { acts.round(*d); }
void act_grant(paceline_cc_downlink*, paceline_cc_channel* c, paceline_cc_rate_grant* g) {
  acts.grant(*c, *g);
}

class RatesBench {
 public:
  RatesBench() {
    rates_.size = sizeof rates_;
    rates_.uplink_bytes = 24;
    rates_.uplink_context_bytes = 40;
    rates_.port_bytes = 24;
    rates_.sender_bytes = 40;
    rates_.fill_request = act_fill_request;
    rates_.fill_want = act_want;
    rates_.on_uplink = act_uplink;
    rates_.on_request = act_request;
    rates_.on_downlink = act_round;
    rates_.fill_grant = act_grant;
    table_.size = sizeof table_;
    table_.abi_major = PACELINE_CC_ABI_MAJOR;
    table_.abi_minor = PACELINE_CC_ABI_MINOR;
    table_.name = "tested";
    table_.summary = "";
    table_.context = PACELINE_CC_PER_PEER_CLASS;
    table_.state_bytes = PACELINE_CC_RATES_STATE_BYTES;
    table_.on_events = act_events;
    table_.rates = &rates_;
    auto examined = examine(&table_);
    REQUIRE(std::holds_alternative<std::unique_ptr<Plugin>>(examined));
    plugin_ = std::move(std::get<0>(examined));
    params = make_params(*plugin_, {}, test::grant_facts());
    put_guard(params, guard);
    down = std::make_unique<PluginDownlink>(plugin_->rates, params);
    up = std::make_unique<PluginUplink>(plugin_->rates, params);
    acts.event = [](const paceline_cc_item& item) { item.decision->rate_bps = 1'000'000'000; };
    acts.uplink = [](paceline_cc_uplink&) {};
    acts.request = [](paceline_cc_downlink&, paceline_cc_channel& c) { c.tell = 1; };
    acts.round = [](paceline_cc_downlink&) {};
    acts.grant = [](paceline_cc_channel& c, paceline_cc_rate_grant& g) {
      g.number = 7;
      g.rate_mbps = c.request->demand_bytes != 0 ? 1000 : 0;
      g.lease_us = 100;
      g.limit_total = c.request->sent_total + 50'000;
    };
  }

  RequestMessage& request_of(std::uint32_t peer) {
    if (peer >= requests_.size()) requests_.resize(peer + 1);
    requests_[peer].channel = static_cast<std::uint16_t>(100 + peer);
    return requests_[peer];
  }
  ChannelCounters* ask(std::int64_t now, std::uint32_t peer, std::uint64_t demand) {
    RequestMessage& r = request_of(peer);
    ++r.req_seq;
    r.demand_bytes = demand;
    r.timestamp_ns = static_cast<std::uint32_t>(now - 1000);
    return down->on_request(Nanos{now}, peer, r);
  }
  std::vector<ReceiverOutput> poll(std::int64_t now) {
    std::vector<ReceiverOutput> all;
    std::array<ReceiverOutput, 4> out;
    std::size_t n = 0;
    do {
      n = down->poll(Nanos{now}, out);
      all.insert(all.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
    } while (n == out.size());
    REQUIRE(down->check_invariants(Nanos{now}) == "");
    return all;
  }

  Guard guard;
  PluginParams params;
  std::unique_ptr<PluginDownlink> down;
  std::unique_ptr<PluginUplink> up;

 private:
  paceline_cc_rates rates_{};
  paceline_cc_algorithm table_{};
  std::unique_ptr<Plugin> plugin_;
  std::vector<RequestMessage> requests_;
};

TEST_CASE("rates: a REQUEST reaches the plug-in once, and the grant answers it") {
  RatesBench bench;
  unsigned calls = 0;
  acts.request = [&](paceline_cc_downlink& d, paceline_cc_channel& c) {
    ++calls;
    CHECK(d.now_ns == 5'000);
    CHECK(c.fresh == 1);
    CHECK(c.listed == 1);
    CHECK(c.request->sent_total == 3'000);
    CHECK(c.request->start_total == 9'000);
    CHECK(c.request->demand_bytes == 77'000);
    CHECK(c.request->degree == 5);
    c.tell = 1;
  };
  RequestMessage& r = bench.request_of(2);
  r.sent_total = 3'000;
  r.unscheduled_total = 9'000;
  r.hint = true;
  r.hint_degree = 5;
  REQUIRE(bench.ask(5'000, 2, 77'000) != nullptr);
  CHECK(bench.down->next_wake() <= Nanos{5'000});
  const auto grants = bench.poll(5'600);
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].peer == 2);
  CHECK(grants[0].grant.channel == 102);
  CHECK(grants[0].grant.grant_seq == 7);
  CHECK(grants[0].grant.rate_mbps == 1000);
  CHECK(grants[0].grant.limit_total == 53'000);
  CHECK(grants[0].grant.timestamp_echo_ns == 4'000);
  CHECK(grants[0].grant.receiver_hold_ns == 600);
  CHECK(grants[0].grant.active_senders == 1);
  // Twice, and late.
  bench.down->on_request(Nanos{6'000}, 2, r);
  RequestMessage late = r;
  --late.req_seq;
  bench.down->on_request(Nanos{6'000}, 2, late);
  CHECK(calls == 1);
  CHECK(bench.guard.clamped + bench.guard.nonsense == 0);
}

TEST_CASE("rates: a sender that starts its numbers again is a new one") {
  RatesBench bench;
  std::vector<bool> fresh;
  unsigned dirty = 0;
  acts.request = [&](paceline_cc_downlink&, paceline_cc_channel& c) {
    fresh.push_back(c.fresh != 0);
    auto* const state = static_cast<unsigned char*>(c.state);
    dirty += c.fresh != 0 && state[39] != 0 ? 1U : 0U;
    std::memset(state, 0xAB, 40);
  };
  std::uint32_t gone = 0;
  acts.round = [&](paceline_cc_downlink& d) { gone += d.gone; };
  bench.request_of(0).req_seq = 500;
  bench.ask(1'000, 0, 10'000);
  bench.ask(2'000, 0, 10'000);
  bench.request_of(0).req_seq = 0;
  bench.ask(3'000, 0, 10'000);  // number 1: looks late
  CHECK(fresh == std::vector<bool>{true, false});
  bench.request_of(0).req_seq = 0;
  bench.ask(3'000 + 16 * kRateRtt, 0, 10'000);
  CHECK(fresh == std::vector<bool>{true, false, true});
  bench.poll(3'000 + 16 * kRateRtt);
  CHECK(gone == 1);
  CHECK(dirty == 0);
  // Another channel of the same peer, and a close.
  bench.request_of(0).close = true;
  bench.ask(200'000, 0, 0);
  bench.poll(200'000);
  CHECK(gone == 2);
  bench.request_of(0).close = false;
  bench.ask(201'000, 0, 1);
  CHECK(fresh.back());
  CHECK(dirty == 0);
}

TEST_CASE("rates: totals are whole, and what another algorithm sent is not charged") {
  constexpr std::uint64_t kWrap = kTotalMask + 1;
  RatesBench bench;
  std::uint64_t received = 0;
  std::uint64_t sent = 0;
  std::uint32_t packets = 0;
  acts.request = [&](paceline_cc_downlink&, paceline_cc_channel& c) {
    received = c.received_total;
    sent = c.request->sent_total;
    packets = c.received_packets;
    c.tell = 1;
  };
  bench.request_of(0).sent_total = kTotalMask - 10'000;
  ChannelCounters* const counters = bench.ask(1'000, 0, 1'000'000);
  CHECK(received == kTotalMask - 10'000);
  counters->rx_bytes += 15'000;
  counters->rx_packets += 4;
  bench.request_of(0).sent_total = 10'000 - 1;  // 20,000 bytes later
  bench.ask(2'000, 0, 1'000'000);
  CHECK(sent == kWrap + 9'999);
  CHECK(received == kTotalMask + 5'000);
  CHECK(packets == 4);
  const auto grants = bench.poll(2'000);
  REQUIRE(grants.size() == 1);
  CHECK(grants[0].grant.limit_total == 59'999);
  // More has arrived than this channel sent.
  counters->rx_bytes += 500'000;
  bench.ask(3'000, 0, 1'000'000);
  CHECK(received == sent);
}

TEST_CASE("rates: rounds come when they are asked for, with those that are listed") {
  RatesBench bench;
  std::vector<std::int64_t> rounds;
  std::vector<std::uint32_t> shown;
  acts.request = [&](paceline_cc_downlink& d, paceline_cc_channel& c) {
    CHECK(d.channels == nullptr);
    c.listed = c.number != 4 ? 1 : 0;
    d.next_ns = std::min(d.next_ns, d.now_ns + 500);
  };
  acts.round = [&](paceline_cc_downlink& d) {
    rounds.push_back(d.now_ns);
    shown.clear();
    for (std::uint32_t i = 0; i < d.channel_count; ++i) shown.push_back(d.channels[i]->number);
    if (rounds.size() == 1) d.channels[0]->listed = 0;
  };
  for (const std::uint32_t peer : {70U, 4U, 1U, 66U}) bench.ask(1'000, peer, 100);
  CHECK(bench.down->next_wake() == Nanos{1'500});
  bench.poll(1'499);
  CHECK(rounds.empty());
  bench.poll(1'500);
  CHECK(rounds == std::vector<std::int64_t>{1'500});
  CHECK(shown == std::vector<std::uint32_t>{1, 66, 70});
  // A sender that leaves makes one, too.
  bench.down->forget(Nanos{2'000}, 70);
  bench.poll(2'100);
  CHECK(rounds.size() == 2);
  CHECK(shown == std::vector<std::uint32_t>{66});
  CHECK(bench.guard.clamped == 0);
  // At once is 100 ns.
  acts.request = [&](paceline_cc_downlink& d, paceline_cc_channel&) { d.next_ns = d.now_ns; };
  bench.ask(3'000, 1, 100);
  CHECK(bench.down->next_wake() == Nanos{3'100});
  CHECK(bench.guard.clamped == 1);
}

TEST_CASE("rates: a sender is heard when it asks, and when its data is seen") {
  RatesBench bench;
  std::vector<std::int64_t> heard;
  acts.round = [&](paceline_cc_downlink& d) {
    heard.push_back(d.channels[0]->heard_at_ns);
    d.next_ns = d.now_ns + 1'000;
  };
  acts.request = [](paceline_cc_downlink& d, paceline_cc_channel&) { d.next_ns = 2'000; };
  ChannelCounters* const counters = bench.ask(1'000, 0, 10'000);
  bench.poll(2'000);
  counters->rx_bytes += 100;
  bench.poll(3'000);
  bench.poll(4'000);
  bench.ask(4'500, 0, 10'000);
  bench.poll(5'000);
  CHECK(heard == std::vector<std::int64_t>{1'000, 3'000, 3'000, 4'500});
}

TEST_CASE("rates: silence towards a sender that asks is quarantine, and it is served") {
  RatesBench bench;
  acts.request = [](paceline_cc_downlink&, paceline_cc_channel&) {};
  std::int64_t now = 10'000;
  std::vector<ReceiverOutput> grants;
  for (; now < 10'000 + 15 * kRateRtt; now += 2 * kRateRtt) {
    bench.ask(now, 0, 1'000'000);
    bench.ask(now, 1, 1'000'000);
    grants = bench.poll(now);
    CHECK(grants.empty());
  }
  CHECK(bench.guard.quarantined == Offence::none);
  bench.poll(now + 3 * kRateRtt);
  CHECK(bench.guard.quarantined == Offence::starved);
  CHECK(bench.guard.by_receiver);
  grants = bench.poll(now + 3 * kRateRtt);
  bench.ask(now + 4 * kRateRtt, 0, 1'000'000);
  const auto more = bench.poll(now + 4 * kRateRtt);
  grants.insert(grants.end(), more.begin(), more.end());
  bool served = false;
  for (const ReceiverOutput& o : grants) {
    if (o.peer != 0) continue;
    served = true;
    CHECK(o.grant.rate_mbps == kLinkMbps / 10 * 9 / 2);
    CHECK(o.grant.lease_us == 1000);
    CHECK(o.grant.limit_total > 4'000'000);
  }
  CHECK(served);
}

TEST_CASE("rates: a hold is an answer, and a sender that is not heard any more needs none") {
  RatesBench bench;
  acts.grant = [](paceline_cc_channel&, paceline_cc_rate_grant& g) {
    g.number = 1;
    g.hold = 1;
    g.lease_us = 100;
  };
  for (std::int64_t now = 0; now < 100 * kRateRtt; now += 2 * kRateRtt) {
    bench.ask(now, 0, 1'000'000);
    bench.poll(now);
  }
  CHECK(bench.guard.quarantined == Offence::none);
  // Asked once, and left out by the plug-in as it says no more.
  acts.request = [](paceline_cc_downlink&, paceline_cc_channel& c) { c.listed = 0; };
  bench.ask(101 * kRateRtt, 0, 1'000'000);
  for (std::int64_t now = 101 * kRateRtt; now < 400 * kRateRtt; now += kRateRtt) bench.poll(now);
  CHECK(bench.guard.quarantined == Offence::none);
  bench.ask(400 * kRateRtt, 0, 1'000'000);
  CHECK(bench.guard.quarantined == Offence::none);
}

TEST_CASE("rates: whatever a port says, grants are within bounds") {
  for (const std::uint64_t seed : {1ULL, 2ULL, 3ULL, 4ULL, 5ULL}) {
    CAPTURE(seed);
    Random random(seed);
    RatesBench bench;
    if (seed % 2 == 1) bench.guard.limits.nonsense = 1'000'000;
    acts.grant = [&](paceline_cc_channel&, paceline_cc_rate_grant& g) {
      g.rate_mbps = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.below(33)));
      g.lease_us = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.below(33)));
      g.delay_us = static_cast<std::uint32_t>(random.below(std::uint64_t{1} << random.below(33)));
      g.limit_total = random.below(std::uint64_t{1} << random.below(64));
      g.number = static_cast<std::uint16_t>(random.below(4));
      g.hold = static_cast<std::uint8_t>(random.below(4));
      g.revoke = static_cast<std::uint8_t>(random.below(3));
    };
    for (std::int64_t now = 1'000; now < 3'000'000; now += 5'000) {
      bench.ask(now, static_cast<std::uint32_t>(random.below(8)), 1'000'000);
      for (const ReceiverOutput& o : bench.poll(now)) {
        REQUIRE(o.grant.rate_mbps <= kLinkMbps);
        REQUIRE((o.grant.rate_mbps == 0 || o.grant.lease_us != 0));
        REQUIRE(!(o.grant.hold && o.grant.rate_mbps != 0));
        REQUIRE(o.grant.lease_us <= kMostLeaseUs);
        REQUIRE(o.grant.effective_delay_us <= kMostLeaseUs);
        REQUIRE(o.grant.grant_seq != 0);
        REQUIRE(o.grant.limit_total <= kMostAheadBytes);
      }
    }
    CHECK(bench.guard.nonsense >= 16);
    CHECK((bench.guard.quarantined == Offence::none) == (seed % 2 == 1));
  }
}

// --- uplink ---

std::vector<ShareOutput> shares_at(RatesBench& bench, std::int64_t now) {
  std::vector<ShareOutput> all;
  std::array<ShareOutput, 4> out;
  std::size_t n = 0;
  do {
    n = bench.up->poll(Nanos{now}, out);
    all.insert(all.end(), out.begin(), out.begin() + static_cast<std::ptrdiff_t>(n));
  } while (n == out.size());
  REQUIRE(bench.up->check_invariants(Nanos{now}) == "");
  return all;
}

UplinkWant active_want(std::uint32_t mbps) {
  UplinkWant want;
  want.active = true;
  want.limit_mbps = mbps;
  want.left_bytes = 1'000'000;
  return want;
}

TEST_CASE("rates: whoever asks for a start is answered at once, others when they are told") {
  RatesBench bench;
  unsigned rounds = 0;
  acts.uplink = [&](paceline_cc_uplink& u) {
    ++rounds;
    u.rest_ns = u.now_ns + 2'000;
    for (std::uint32_t i = 0; i < u.context_count; ++i) {
      CHECK((i == 0 || u.contexts[i]->number > u.contexts[i - 1]->number));
      paceline_cc_share& share = *u.contexts[i]->share;
      CHECK(share.answers_start == 0);
      share.rate_mbps = kLinkMbps / u.context_count;
      share.start_bytes = u.contexts[i]->want->start_bytes / 2;
      u.contexts[i]->tell = u.contexts[i]->number == 9 ? 1 : 0;
    }
  };
  UplinkWant asks = active_want(0);
  asks.asks_start = true;
  asks.start_bytes = 8'000;
  bench.up->update(Nanos{1'000}, 3, asks);
  CHECK(bench.up->next_wake() <= Nanos{1'000});
  auto told = shares_at(bench, 1'000);
  REQUIRE(told.size() == 1);
  CHECK(told[0].context == 3);
  CHECK(told[0].share.answers_start);
  CHECK(told[0].share.start_bytes == 4'000);
  CHECK(told[0].share.rate_mbps == 100'000);
  // Rests, but not for one that asks.
  bench.up->update(Nanos{1'500}, 9, active_want(10'000));
  CHECK(bench.up->next_wake() == Nanos{3'000});
  CHECK(shares_at(bench, 1'500).empty());
  asks.asks_start = false;
  bench.up->update(Nanos{1'600}, 3, asks);
  asks.asks_start = true;
  bench.up->update(Nanos{1'700}, 70, asks);
  told = shares_at(bench, 1'700);
  REQUIRE(told.size() == 2);
  CHECK(told[0].context == 9);
  CHECK_FALSE(told[0].share.answers_start);
  CHECK(told[1].context == 70);
  CHECK(rounds == 2);
  // A backlog that shrinks a little is no news.
  UplinkWant less = active_want(10'000);
  less.left_bytes -= 5'000;
  bench.up->update(Nanos{9'000}, 9, less);
  CHECK(bench.up->next_wake() == kNeverNanos);
  CHECK(bench.guard.clamped + bench.guard.nonsense == 0);
}

TEST_CASE("rates: a context that is forgotten is told nothing, and its state begins again") {
  RatesBench bench;
  acts.uplink = [&](paceline_cc_uplink& u) {
    for (std::uint32_t i = 0; i < u.context_count; ++i) {
      auto* const state = static_cast<unsigned char*>(u.contexts[i]->state);
      CHECK(state[0] == 0);
      std::memset(state, 1, 40);
      u.contexts[i]->tell = 1;
    }
  };
  for (std::uint32_t c = 0; c < 6; ++c) bench.up->update(Nanos{1'000}, c, active_want(1));
  std::array<ShareOutput, 2> out;
  REQUIRE(bench.up->poll(Nanos{1'000}, out) == 2);
  bench.up->forget(Nanos{1'000}, 4);
  const auto rest = shares_at(bench, 1'000);
  REQUIRE(rest.size() == 3);
  CHECK(rest[2].context == 5);
  acts.uplink = [&](paceline_cc_uplink& u) {
    for (std::uint32_t i = 0; i < u.context_count; ++i) {
      const auto* const state = static_cast<unsigned char*>(u.contexts[i]->state);
      CHECK((state[0] == 0) == (u.contexts[i]->number == 4));
      CHECK(u.contexts[i]->share->rate_mbps == kLinkMbps);
    }
  };
  bench.up->update(Nanos{2'000}, 4, active_want(1));
  shares_at(bench, 2'000);
  CHECK(bench.guard.quarantined == Offence::none);
}

// --- a context ---

TEST_CASE("rates: a context sees grants and shares, and decides ceilings and requests") {
  RatesBench bench;
  PluginState state{};
  set_guard_word(state.bytes, bench.params);
  Decision decision;
  paceline_cc_event seen{};
  paceline_cc_rate_grant grant{};
  acts.event = [&](const paceline_cc_item& item) {
    seen = *item.event;
    if (item.event->rate_grant != nullptr) grant = *item.event->rate_grant;
    CHECK(item.decision->request == 0);
    item.decision->rate_bps = 0;
    item.decision->ceiling = 12'345;
    item.decision->request = 1;
  };
  Event event;
  event.now = Nanos{1'000};
  event.peer_count_hint = 4;
  on_event(state, bench.params, event, decision);
  CHECK(seen.peers == 8);
  CHECK(seen.rate_grant == nullptr);
  CHECK(decision.request);
  CHECK(decision.ceiling == 12'345);
  CHECK(decision.rate.bps == 0);

  GrantMessage message;
  message.grant_seq = 3;
  message.rate_mbps = 5'000;
  message.limit_total = 5;
  message.timestamp_echo_ns = 4'000;
  message.receiver_hold_ns = 700;
  event = {};
  event.signal = Signal::grant;
  event.now = Nanos{9'000};
  event.sent_total = kTotalMask;
  event.grant = &message;
  on_event(state, bench.params, event, decision);
  CHECK(seen.signal == PACELINE_CC_GRANT);
  CHECK(seen.peers == 8);
  CHECK(grant.number == 3);
  CHECK(grant.limit_total == kTotalMask + 6);
  CHECK(grant.round_trip_ns == 4'300);

  RequestMessage request;
  event.backlog_bytes = 999;
  REQUIRE(fill_request(state, bench.params, event, decision, request));
  CHECK(request.req_seq == 1);
  CHECK(request.demand_bytes == 999);
  CHECK(request.sent_total == kTotalMask);
  CHECK(request.tx_cap_mbps == PACELINE_CC_NO_CAP);
  CHECK(request.timestamp_ns == 9'000);
  CHECK(bench.guard.clamped + bench.guard.nonsense == 0);
}

TEST_CASE("rates: work that is held back without end is quarantine") {
  RatesBench bench;
  PluginState state{};
  set_guard_word(state.bytes, bench.params);
  Decision decision;
  acts.event = [](const paceline_cc_item& item) { item.decision->rate_bps = 0; };
  Event event;
  on_event(state, bench.params, event, decision);
  // Idle for long is nothing.
  event.signal = Signal::message;
  event.now = Nanos{1'000'000'000};
  event.backlog_bytes = 1'000;
  on_event(state, bench.params, event, decision);
  CHECK(bench.guard.quarantined == Offence::none);
  REQUIRE(decision.timed);
  CHECK(decision.wake_at.count > event.now.count + kStuckNs);
  event.signal = Signal::tick;
  event.now = decision.wake_at;
  on_event(state, bench.params, event, decision);
  CHECK(bench.guard.quarantined == Offence::stuck);
  CHECK(decision.fallback);
  CHECK(decision.rate.bps > 0);
}

}  // namespace
}  // namespace paceline::cc::plugin
