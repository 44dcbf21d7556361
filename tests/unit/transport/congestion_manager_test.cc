// Contexts, and the algorithms in them: who has which, what they hear, what their decisions do.
#include "dataplane/transport/congestion/congestion_manager.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include "cc/plugin/call.h"
#include "dataplane/base/numbers/random.h"
#include "tests/unit/transport/congestion_bench.h"
#include "tests/unit/transport/witness.h"

namespace paceline::transport::test {
namespace {

using cc::AlgorithmId;

TEST_CASE("contexts: one for each queue pair, or one for all to a peer and class",
          "[transport][contexts]") {
  const bool channels = GENERATE(false, true);
  CongestionBench b(bench_config(channels ? AlgorithmId::cadence : AlgorithmId::dcqcn));
  QueuePair& first = b.connect(1);
  QueuePair& second = b.connect(1);
  QueuePair& other_class = b.connect(1, 5);
  QueuePair& other_peer = b.connect(2);
  CHECK((first.context == second.context) == channels);
  CHECK(first.context != other_class.context);
  CHECK(first.context != other_peer.context);
  CHECK(b.contexts_in_use() == (channels ? 3 : 4));
  CHECK(b.context(first).queue_pairs == (channels ? 2 : 1));
  CHECK(b.core.peers[first.peer].context == (channels ? first.context : kNoIndex));
  CHECK(b.context(first).proactive == channels);
  CHECK(first.peer_v4 == host(1).v4_value());
  // A stranger is served by the fallback.
  b.core.config.peers = PeerPolicy::roce;
  const QueuePair& stranger = b.connect(3);
  CHECK(b.context(stranger).algorithm == AlgorithmId::dcqcn);
  CHECK(b.core.peers[stranger.peer].context == kNoIndex);
}

TEST_CASE("contexts: their sums are those of their queue pairs, and nothing is left of them",
          "[transport][contexts]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  const auto algorithm = GENERATE(AlgorithmId::fixed, AlgorithmId::cadence);
  CAPTURE(seed);
  Random random(seed);
  CongestionBench b(bench_config(algorithm));
  std::vector<QueuePair*> pairs;
  const Picos began = b.core.now;
  const auto detach = [&](std::size_t i) {
    b.congestion.detach(*pairs[i]);
    REQUIRE(pairs[i]->context == kNoIndex);
    REQUIRE(pairs[i]->peer == kNoIndex);
    REQUIRE_FALSE(pairs[i]->active);
    pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(i));
  };
  for (int step = 0; step < 600; ++step) {
    const std::uint64_t what = random.below(6);
    if (what == 0 && pairs.size() < 30) {
      pairs.push_back(&b.connect(static_cast<std::uint32_t>(random.below(6))));
    } else if (!pairs.empty()) {
      const std::size_t i = random.below(pairs.size());
      QueuePair& qp = *pairs[i];
      if (what == 1) {
        detach(i);
      } else if (what < 4 && qp.requester.queue.size() < 20) {
        b.begin(qp, random.below(5 * kBenchMtu));
        REQUIRE(qp.active);
      } else if (Requester::has_work(qp, b.core.now)) {
        b.send(qp);
        b.congestion.settle(qp);
        REQUIRE(qp.active == Requester::has_work(qp, b.core.now));
      } else {
        b.acknowledge(qp);
        b.congestion.perform();
      }
    }
    b.send_control();
    b.core.now = b.core.now + picos_from_nanos(static_cast<std::int64_t>(random.below(500)));
    std::vector<std::uint64_t> in_flight(b.core.contexts.size()), backlog(in_flight),
        count(in_flight);
    for (const QueuePair* qp : pairs) {
      in_flight[qp->context] += qp->requester.inflight_bytes;
      backlog[qp->context] += qp->requester.backlog_bytes;
      ++count[qp->context];
    }
    for (std::uint32_t c = 0; c < b.core.contexts.size(); ++c) {
      const CongestionContext& context = b.core.contexts[c];
      REQUIRE(context.in_use == (count[c] != 0));
      if (!context.in_use) continue;
      REQUIRE(context.queue_pairs == count[c]);
      REQUIRE(context.inflight_bytes == in_flight[c]);
      REQUIRE(context.backlog_bytes == backlog[c]);
    }
    REQUIRE(b.contexts_in_use() + b.core.free_contexts.size() == b.core.contexts.size());
  }
  std::int64_t lived = 0;
  for (std::uint32_t c = 0; c < b.core.contexts.size(); ++c) {
    CongestionContext& context = b.core.contexts[c];
    if (!context.in_use) continue;
    b.scheduler.settle_limiter(context);
    lived += std::accumulate(context.limiter_picos.begin(), context.limiter_picos.end(),
                             std::int64_t{0});
  }
  const std::int64_t retired = std::accumulate(b.core.retired_limiter_picos.begin(),
                                               b.core.retired_limiter_picos.end(), std::int64_t{0});
  CHECK(retired > 0);
  while (!pairs.empty()) detach(0);
  CHECK(b.contexts_in_use() == 0);
  CHECK(std::accumulate(b.core.retired_limiter_picos.begin(), b.core.retired_limiter_picos.end(),
                        std::int64_t{0}) == retired + lived);
  CHECK(retired + lived <= (b.core.now - began).count * std::int64_t{b.core.contexts.size()});
  for (std::uint32_t i = 0; i < b.core.peers.size(); ++i) {
    CHECK(b.core.peers[i].queue_pairs == 0);
    CHECK(b.core.peers[i].context == kNoIndex);
  }
  // What is ready is stale, and time brings nothing.
  b.core.now = b.core.now + picos_from_micros(100'000);
  CHECK(b.scheduler.pop_paced() == Scheduler::kNone);
  CHECK(b.scheduler.pop_timed() == Scheduler::kNone);
  CHECK_FALSE(b.core.has_actions);
}

TEST_CASE("contexts: an event brings the totals of its context, and only if it is wanted",
          "[transport][contexts]") {
  Witness w;
  CongestionBench b(w.config());
  QueuePair& qp = b.connect(1);
  QueuePair& other = b.connect(2);
  REQUIRE(w.heard.size() == 2);
  CHECK(w.heard[0].signal == PACELINE_CC_START);
  w.heard.clear();

  b.begin(qp, 3 * kBenchMtu);
  const std::uint32_t sent = b.send(qp);
  cc::Event event;
  event.signal = cc::Signal::cnp;
  b.congestion.deliver(qp.context, event);
  b.send(qp);
  event = {};
  event.signal = cc::Signal::nack;  // nobody wants it
  b.congestion.deliver(qp.context, event);
  event = {};
  event.signal = cc::Signal::cnp;
  b.congestion.deliver(qp.context, event);
  REQUIRE(w.heard.size() == 3);
  CHECK(w.of(b.context(qp)).size() == 3);
  CHECK(w.of(b.context(other)).empty());
  CHECK(w.heard[0].signal == PACELINE_CC_MESSAGE);
  CHECK(w.heard[0].message_bytes == 3 * kBenchMtu);
  CHECK(w.heard[0].backlog_bytes == 3 * kBenchMtu);
  CHECK(w.heard[0].now_ns == to_nanos(b.core.now).count);
  CHECK(w.heard[1].backlog_bytes == 2 * kBenchMtu);
  CHECK(w.heard[1].sent_total == sent);
  CHECK(w.heard[1].sent_bytes == sent);
  CHECK(w.heard[1].inflight_bytes == sent);
  CHECK(w.heard[2].sent_total == 2 * sent - 16);
  CHECK(w.heard[2].sent_bytes == sent - 16);  // since the event before

  // A message without payload counts a byte as long as it waits.
  w.heard.clear();
  b.begin(other, 0);
  REQUIRE(w.heard.size() == 1);
  CHECK(w.heard[0].backlog_bytes == 1);
}

TEST_CASE(
    "contexts: a queue pair has turns while it has work, and then its algorithm hears so once",
    "[transport][contexts]") {
  Witness w;
  CongestionBench b(w.config());
  QueuePair& qp = b.connect(1);
  b.begin(qp, kBenchMtu);
  w.heard.clear();
  CHECK(b.context(qp).place == ContextPlace::ready);
  b.congestion.report_idle(qp.context);
  CHECK(w.heard.empty());  // it is not
  b.send(qp);
  b.core.actions.settle_or_idle(qp);
  b.core.actions.settle_or_idle(qp);
  b.congestion.perform();
  CHECK_FALSE(qp.active);
  REQUIRE(w.heard.size() == 1);
  CHECK(w.heard[0].signal == PACELINE_CC_IDLE);
  CHECK(w.heard[0].backlog_bytes == 0);
  // Work that came back without an event of its own is announced, once.
  w.heard.clear();
  b.post(qp, 10);
  b.core.actions.resume_and_report(qp);
  b.core.actions.resume_and_report(qp);
  b.congestion.perform();
  CHECK(qp.active);
  REQUIRE(w.heard.size() == 1);
  CHECK(w.heard[0].signal == PACELINE_CC_MESSAGE);
  b.core.actions.stop(qp);
  b.congestion.perform();
  CHECK_FALSE(qp.active);
}

TEST_CASE("contexts: decisions are in force at once, and their timers are kept",
          "[transport][contexts]") {
  Witness w;
  CongestionBench b(w.config());
  QueuePair& qp = b.connect(1);
  b.begin(qp, 5 * kBenchMtu);
  b.send(qp);
  cc::Event event;
  event.signal = cc::Signal::cnp;
  w.window_bytes = 1;  // less than there is in flight
  b.congestion.deliver(qp.context, event);
  CHECK(b.context(qp).place == ContextPlace::blocked);
  // Bytes leave the network.
  b.acknowledge(qp);
  b.congestion.perform();
  CHECK(b.context(qp).place == ContextPlace::ready);
  // Not before its time, and then once.
  w.wake_in_ns = 5'000;
  b.congestion.deliver(qp.context, event);
  w.wake_in_ns = 0;
  w.heard.clear();
  const Picos told = b.core.now;
  b.core.now = told + picos_from_nanos(4'999);
  b.congestion.run_due();
  CHECK(w.heard.empty());
  b.core.now = told + picos_from_nanos(5'000);
  b.congestion.run_due();
  b.congestion.run_due();
  REQUIRE(w.heard.size() == 1);
  CHECK(w.heard[0].signal == PACELINE_CC_TICK);
}

TEST_CASE("contexts: a flow that begins anew has forgotten what it knew, a channel has not",
          "[transport][contexts]") {
  Witness w;
  CongestionBench b(w.config());
  QueuePair& qp = b.connect(1);
  b.begin(qp, 5 * kBenchMtu);
  b.send(qp);
  b.context(qp).next_send = b.core.now + picos_from_micros(9);
  w.heard.clear();
  b.congestion.restart(qp);
  REQUIRE(w.heard.size() == 1);
  CHECK(w.heard[0].signal == PACELINE_CC_START);
  CHECK(b.context(qp).next_send == b.core.now);
  CHECK(b.context(qp).sent_since_event == 0);

  CongestionBench c(bench_config(AlgorithmId::cadence));
  QueuePair& channel = c.connect(1);
  c.begin(channel, 500'000);
  const auto state = c.context(channel).state;
  c.congestion.restart(channel);
  CHECK(c.context(channel).state == state);
}

TEST_CASE("contexts: a plug-in in quarantine is left for the fallback, which goes on from its rate",
          "[transport][contexts]") {
  Witness w;
  w.rate_bps = 10'000'000'000;
  CongestionBench b(w.config());
  std::vector<QueuePair*> pairs{&b.connect(1), &b.connect(2), &b.connect(3)};
  b.congestion.detach(*pairs[2]);
  for (std::size_t i = 0; i < 2; ++i) b.begin(*pairs[i], 100 * kBenchMtu);
  b.core.params.at(w.id()).as<cc::plugin::PluginParams>().guard->quarantine(
      cc::plugin::Offence::nonsense);
  REQUIRE(b.watch.take_news(static_cast<unsigned>(w.id()) - cc::kAlgorithms, b.core.counters));
  w.heard.clear();
  b.congestion.leave_plugin(w.id());
  CHECK(w.heard.empty());  // it is not called any more
  for (std::size_t i = 0; i < 2; ++i) {
    const CongestionContext& c = b.context(*pairs[i]);
    CHECK(c.on_fallback);
    CHECK(c.fallback == AlgorithmId::dcqcn);
    CHECK(c.decision.rate == rate_from_gbps(10));
    CHECK((c.wants & cc::find(AlgorithmId::dcqcn)->wants) == cc::find(AlgorithmId::dcqcn)->wants);
    CHECK(c.place == ContextPlace::ready);
  }
  CHECK(b.core.counters.fallbacks == 2);
  b.congestion.leave_plugin(w.id());
  CHECK(b.core.counters.fallbacks == 2);
  // The algorithm that decides is told of congestion.
  const Rate before = b.context(*pairs[0]).decision.rate;
  cc::Event event;
  event.signal = cc::Signal::cnp;
  b.congestion.deliver(pairs[0]->context, event);
  CHECK(b.context(*pairs[0]).decision.rate < before);
  CHECK(b.context(*pairs[1]).decision.rate == before);
}

TEST_CASE("contexts: without grants the fallback decides, and a GRANT ends that",
          "[transport][contexts]") {
  CongestionBench b(bench_config(AlgorithmId::cadence));
  QueuePair& qp = b.connect(1);
  b.begin(qp, 5'000'000);
  b.congestion.deliver_shares();
  const CongestionContext& c = b.context(qp);
  for (int i = 0; i < 2000 && !c.on_fallback; ++i) {
    b.core.now = later(b.core.now + Picos{1},
                       earlier(b.scheduler.next_deadline(), b.grants.next_deadline()));
    b.congestion.run_due();
    b.congestion.deliver_shares();
    b.send_control();
    // What may leave does.
    while (c.place == ContextPlace::ready && c.sent_total < 1'000'000) {
      b.core.contexts[b.scheduler.pop_ready(kDefaultDataClass)].in_rings = 0;
      b.send(qp);
      b.scheduler.pace(b.context(qp), {1'000, true, false});
      b.scheduler.place(qp.context);
    }
  }
  REQUIRE(c.on_fallback);
  CHECK(c.fallback == AlgorithmId::dcqcn);
  CHECK(b.core.counters.fallbacks == 1);
  CHECK(c.decision.ceiling == cc::kUnlimited);
  CHECK(c.decision.rate.bps != 0);
  CHECK((c.wants & cc::signal_bit(cc::Signal::cnp)) != 0);
  const auto asked = b.requests();
  REQUIRE(asked.size() > 1);
  GrantMessage grant;
  grant.timestamp_echo_ns = asked.back().timestamp_ns;
  grant.channel = c.channel;
  grant.grant_seq = 1;
  grant.rate_mbps = 5'000;
  grant.lease_us = 1'000;
  grant.limit_total = c.sent_total + 1'000'000;
  cc::Event event;
  event.signal = cc::Signal::grant;
  event.grant = &grant;
  b.congestion.deliver(qp.context, event);
  CHECK_FALSE(c.on_fallback);
  CHECK(c.wants == cc::find(AlgorithmId::cadence)->wants);
  CHECK(c.decision.ceiling <= grant.limit_total);
}

TEST_CASE("contexts: datagrams to a peer and class share one, which CNPs of the peer slow",
          "[transport][contexts]") {
  Witness w;
  CongestionBench b(w.config());
  const auto add = [&](std::uint32_t to, std::uint8_t traffic_class) {
    AddressHandle& handle = b.core.handles.add();
    handle.path.ip = host(to);
    handle.path.mac = wire::MacAddress::local(to);
    handle.path.traffic_class = traffic_class;
    b.congestion.attach(handle);
    return handle.number;
  };
  const std::uint32_t first = add(1, 3), again = add(1, 3), other_class = add(1, 4),
                      far = add(2, 3);
  const auto context_of = [&](std::uint32_t number) {
    return b.core.handles.find(number)->context;
  };
  CHECK(context_of(first) == context_of(again));
  CHECK(context_of(first) != context_of(other_class));
  CHECK(context_of(first) != context_of(far));
  w.heard.clear();
  b.congestion.on_datagram_cnp(host(1));
  CHECK(w.heard.size() == 2);
  CHECK(w.of(b.context(context_of(first))).size() == 1);
  CHECK(w.of(b.context(context_of(other_class))).size() == 1);
  b.congestion.on_datagram_cnp(host(9));
  CHECK(w.heard.size() == 2);
  CHECK(b.core.counters.cnps_received == 2);
  for (const std::uint32_t number : {first, other_class, far}) {
    b.congestion.detach(*b.core.handles.find(number));
  }
  CHECK(b.contexts_in_use() == 1);
  const std::uint32_t peer = b.core.handles.find(again)->peer;
  b.congestion.detach(*b.core.handles.find(again));
  CHECK(b.contexts_in_use() == 0);
  CHECK(b.core.peers[peer].datagram_context == kNoIndex);
  CHECK(b.core.peers[peer].queue_pairs == 0);
}

TEST_CASE(
    "contexts: what a peer says of the number of its peers reaches its channel when it is new",
    "[transport][contexts]") {
  CongestionBench b(bench_config(AlgorithmId::cadence));
  QueuePair& qp = b.connect(1);
  b.congestion.on_peer_count_hint(host(1), kDefaultDataClass, 3);
  CHECK(b.core.peers[qp.peer].peer_count_hint == 3);
  b.congestion.on_peer_count_hint(host(1), kDefaultDataClass, 0);  // it said nothing
  CHECK(b.core.peers[qp.peer].peer_count_hint == 3);
  b.congestion.on_peer_count_hint(host(2), kDefaultDataClass, 4);  // nobody
  CHECK(b.core.peers.size() == 1);
}

}  // namespace
}  // namespace paceline::transport::test
