// Another setup while traffic runs: contexts are told one by one, and nothing of their traffic is
// lost.
#include "dataplane/transport/congestion/migration.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/transport/congestion_bench.h"
#include "tests/unit/transport/witness.h"

namespace paceline::transport::test {
namespace {

using cc::AlgorithmId;

constexpr Picos kChangeSpan = picos_from_nanos(kChangeRtts * kBenchRttNs);

struct MigrationBench : CongestionBench {
  using CongestionBench::CongestionBench;
  std::uint32_t running(AlgorithmId id) const {
    std::uint32_t n = 0;
    for (std::uint32_t i = 0; i < core.contexts.size(); ++i) {
      n += core.contexts[i].in_use && core.contexts[i].algorithm == id ? 1 : 0;
    }
    return n;
  }
  void poll() {
    migration.poll();
    send_control();
  }
  // Time advances to the end of the change.
  void finish() {
    while (migration.under_way()) {
      REQUIRE(migration.next_deadline() != kNever);
      core.now = later(core.now, migration.next_deadline());
      poll();
    }
  }
  // Sums of contexts are those of their queue pairs.
  void check_sums() {
    std::vector<std::uint64_t> in_flight(core.contexts.size()), backlog(in_flight),
        pairs(in_flight);
    for (const QueuePair* qp : core.qps) {
      if (qp->context == kNoIndex) continue;
      in_flight[qp->context] += qp->requester.inflight_bytes;
      backlog[qp->context] += qp->requester.backlog_bytes;
      ++pairs[qp->context];
      REQUIRE(qp->active == Requester::has_work(*qp, core.now));
    }
    for (std::uint32_t i = 0; i < core.contexts.size(); ++i) {
      const CongestionContext& c = core.contexts[i];
      REQUIRE(c.in_use == (pairs[i] != 0));
      if (!c.in_use) continue;
      REQUIRE(c.inflight_bytes == in_flight[i]);
      REQUIRE(c.backlog_bytes == backlog[i]);
      REQUIRE(c.queue_pairs == pairs[i]);
    }
  }
};

TEST_CASE("migration: contexts go over one by one, within ten round trips",
          "[transport][migration]") {
  MigrationBench b(bench_config(AlgorithmId::fixed));
  constexpr std::uint32_t kPairs = 40;
  for (std::uint32_t i = 0; i < kPairs; ++i) b.begin(b.connect(i % 7), 10 * kBenchMtu);
  const Picos began = b.core.now;
  b.migration.begin(bench_setup(AlgorithmId::swift), 1, 6);
  CHECK(b.migration.under_way());
  CHECK(b.core.control_active);
  Picos last{-1};
  for (std::uint32_t n = 0; n < kPairs; ++n) {
    CHECK(b.running(AlgorithmId::swift) == n);
    REQUIRE(b.migration.next_deadline() >= b.core.now);
    CHECK(b.migration.next_deadline() > last);
    last = b.core.now = b.migration.next_deadline();
    b.poll();
    const CongestionContext& c = b.context(*b.core.qps[n]);
    CHECK(c.algorithm == AlgorithmId::swift);
    CHECK(c.arm == 1);
    CHECK(c.epoch == 6);
    b.check_sums();
  }
  CHECK_FALSE(b.migration.under_way());
  CHECK(b.core.now <= began + kChangeSpan);
  CHECK(b.core.now >= began + kChangeSpan / 2);
  CHECK(b.migration.next_deadline() == kNever);
  CHECK_FALSE(b.core.control_active);
}

TEST_CASE("migration: nobody to tell, and a poll that comes late", "[transport][migration]") {
  MigrationBench b(bench_config(AlgorithmId::fixed));
  b.migration.begin(bench_setup(AlgorithmId::swift), 0, 0);
  CHECK_FALSE(b.migration.under_way());
  constexpr std::uint32_t kPairs = 150;
  for (std::uint32_t i = 0; i < kPairs; ++i) b.connect(i % 50);
  b.congestion.detach(*b.core.qps[3]);  // it has no context any more
  b.migration.begin(bench_setup(AlgorithmId::dcqcn), 0, 0);
  b.core.now = b.core.now + kChangeSpan;
  b.poll();
  const std::uint32_t first = b.running(AlgorithmId::dcqcn);
  CHECK(first > 0);
  CHECK(first <= 64);  // traffic is not held up for all of them
  b.poll();
  CHECK(b.running(AlgorithmId::dcqcn) == first);  // its time has not come
  b.finish();
  CHECK(b.running(AlgorithmId::dcqcn) == kPairs - 1);
}

TEST_CASE("migration: other values reach each context as an event, once",
          "[transport][migration]") {
  Witness w;
  MigrationBench b(w.config());
  std::vector<QueuePair*> pairs;
  for (std::uint32_t i = 0; i < 5; ++i) pairs.push_back(&b.connect(i));
  w.heard.clear();
  CcSetup setup = bench_setup(AlgorithmId::dcqcn);
  setup.primary = w.config().primary;
  b.migration.begin(setup, 1, 3);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    CHECK(w.heard.size() == i);
    b.core.now = b.migration.next_deadline();
    b.poll();
    const auto own = w.of(b.context(*pairs[i]));
    REQUIRE(own.size() == 1);
    CHECK(own[0].signal == PACELINE_CC_TICK);
    CHECK(b.context(*pairs[i]).arm == 1);
    CHECK(b.context(*pairs[i]).epoch == 3);
  }
  CHECK_FALSE(b.migration.under_way());
  // A context that is made during a change has been told of it.
  b.migration.begin(setup, 0, 4);
  w.heard.clear();
  const QueuePair& late = b.connect(9);
  CHECK(b.context(late).epoch == 4);
  b.finish();
  CHECK(w.of(b.context(late)).size() == 1);  // the start
}

TEST_CASE("migration: a channel hears once, however many queue pairs it has",
          "[transport][migration]") {
  MigrationBench b(bench_config(AlgorithmId::cadence));
  QueuePair& first = b.connect(1);
  b.connect(1);
  b.migration.begin(bench_setup(AlgorithmId::cadence), 1, 2);
  b.context(first).sent_since_event = 50;
  b.core.now = b.migration.next_deadline();
  b.poll();
  CHECK(b.context(first).epoch == 2);
  CHECK(b.context(first).sent_since_event == 0);  // an event was delivered
  CHECK(b.migration.under_way());
  b.context(first).sent_since_event = 70;
  b.finish();
  CHECK(b.context(first).sent_since_event == 70);
}

TEST_CASE("migration: a change of a change goes on where the first one was",
          "[transport][migration]") {
  MigrationBench b(bench_config(AlgorithmId::fixed));
  for (std::uint32_t i = 0; i < 10; ++i) b.connect(i);
  b.migration.begin(bench_setup(AlgorithmId::swift), 0, 0);
  for (int i = 0; i < 4; ++i) {
    b.core.now = b.migration.next_deadline();
    b.poll();
  }
  b.migration.begin(bench_setup(AlgorithmId::dcqcn), 0, 0);
  std::vector<std::uint32_t> order;
  while (b.migration.under_way()) {
    b.core.now = b.migration.next_deadline();
    b.poll();
    for (std::uint32_t i = 0; i < 10; ++i) {
      const bool known = std::find(order.begin(), order.end(), i) != order.end();
      if (!known && b.context(*b.core.qps[i]).algorithm == AlgorithmId::dcqcn) order.push_back(i);
    }
  }
  CHECK(order == std::vector<std::uint32_t>{4, 5, 6, 7, 8, 9, 0, 1, 2, 3});
}

TEST_CASE("migration: into channels and out of them, with all that waits and is in flight",
          "[transport][migration]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  Random random(seed);
  MigrationBench b(bench_config(AlgorithmId::fixed));
  constexpr std::uint32_t kPairs = 24, kHosts = 5;
  std::uint64_t backlog = 0, in_flight = 0;
  for (std::uint32_t i = 0; i < kPairs; ++i) {
    QueuePair& qp = b.connect(i % kHosts);
    if (random.below(4) == 0) continue;
    b.begin(qp, (1 + random.below(20)) * kBenchMtu);
    for (std::uint64_t n = random.below(4); n != 0 && Requester::has_work(qp, b.core.now); --n) {
      b.send(qp);
    }
    b.congestion.settle(qp);
    backlog += qp.requester.backlog_bytes;
    in_flight += qp.requester.inflight_bytes;
  }
  b.check_sums();
  const AlgorithmId order[] = {AlgorithmId::cadence, AlgorithmId::sird, AlgorithmId::dcqcn,
                               AlgorithmId::homa, AlgorithmId::fixed};
  for (const AlgorithmId id : order) {
    const bool channels = CongestionSetups::has_channels(id);
    b.migration.begin(bench_setup(id), 0, 0);
    while (b.migration.under_way()) {
      b.core.now = b.migration.next_deadline();
      b.poll();
      b.congestion.deliver_shares();
      b.check_sums();
      if (random.below(8) == 0) break;  // the next one comes in its middle
    }
    if (!b.migration.under_way()) {
      CHECK(b.running(id) == b.contexts_in_use());
      CHECK(b.contexts_in_use() == (channels ? kHosts : kPairs));
    }
  }
  b.finish();
  CHECK(b.contexts_in_use() == kPairs);
  std::uint64_t backlog_now = 0, in_flight_now = 0;
  for (std::uint32_t i = 0; i < b.core.contexts.size(); ++i) {
    if (!b.core.contexts[i].in_use) continue;
    backlog_now += b.core.contexts[i].backlog_bytes;
    in_flight_now += b.core.contexts[i].inflight_bytes;
  }
  CHECK(backlog_now == backlog);
  CHECK(in_flight_now == in_flight);
  CHECK(b.grants.violation().empty());
  for (std::uint32_t i = 0; i < b.core.peers.size(); ++i) {
    CHECK(b.core.peers[i].context == kNoIndex);
  }
}

TEST_CASE("migration: those that leave a channel share its rate, by their number",
          "[transport][migration]") {
  MigrationBench b(bench_config(AlgorithmId::cadence));
  std::vector<QueuePair*> busy;
  for (int i = 0; i < 4; ++i) busy.push_back(&b.connect(1));
  b.connect(1);  // it has nothing to send and gets no part
  for (QueuePair* qp : busy) b.begin(*qp, 100 * kBenchMtu);
  CongestionContext& channel = b.context(*busy[0]);
  b.congestion.deliver_shares();
  channel.decision.rate = rate_from_gbps(40);
  channel.decision.window_bytes = cc::kUnlimited;
  channel.decision.ceiling = cc::kUnlimited;
  b.migration.begin(bench_setup(AlgorithmId::dcqcn), 0, 0);
  b.finish();
  for (QueuePair* qp : busy) {
    CHECK(b.context(*qp).decision.rate == rate_from_gbps(10));
  }
}

TEST_CASE("migration: after the last context the port grants for two milliseconds more",
          "[transport][migration]") {
  MigrationBench b(bench_config(AlgorithmId::cadence));
  b.connect(1);
  REQUIRE(b.core.receiver != nullptr);
  b.migration.begin(bench_setup(AlgorithmId::swift), 0, 0);
  b.finish();
  CHECK(b.core.receiver != nullptr);
  CHECK(b.core.control_active);
  const Picos end = b.core.now + picos_from_micros(2'000);
  CHECK(b.migration.next_deadline() == end);
  b.core.now = end - Picos{1};
  b.poll();
  CHECK(b.core.receiver != nullptr);
  SECTION("then it is over") {
    b.core.now = end;
    b.poll();
    CHECK(b.core.receiver == nullptr);
    CHECK_FALSE(b.core.control_active);
    CHECK(b.migration.next_deadline() == kNever);
  }
  SECTION("unless it is to grant again") {
    b.migration.begin(bench_setup(AlgorithmId::cadence), 0, 0);
    b.finish();
    b.core.now = end + picos_from_micros(1'000);
    b.poll();
    CHECK(b.core.receiver != nullptr);
    CHECK(b.migration.next_deadline() == kNever);
  }
}

TEST_CASE("migration: a peer that turns out to grant gets a channel for its traffic",
          "[transport][migration]") {
  EngineConfig config = bench_config(AlgorithmId::cadence);
  config.peers = PeerPolicy::discover;
  config.reliability = Reliability::selective;
  MigrationBench b(config);
  QueuePair& first = b.connect(1);
  QueuePair& second = b.connect(1);
  const QueuePair& stranger = b.connect(2);
  b.begin(first, 10 * kBenchMtu);
  CHECK(b.running(AlgorithmId::dcqcn) == 3);
  b.migration.adopt_peer({first.peer, kFeatureXack, 0});
  CHECK(b.running(AlgorithmId::dcqcn) == 3);
  CHECK(first.selective != nullptr);
  CHECK(second.selective != nullptr);
  CHECK(stranger.selective == nullptr);
  const SelectiveState* const state = first.selective.get();
  b.migration.adopt_peer({first.peer, kFeatureXack | kFeatureGrants, 5});
  CHECK(first.selective.get() == state);
  CHECK(b.core.peers[first.peer].status == PeerStatus::paceline);
  CHECK(b.core.peers[first.peer].peer_count_hint == 5);
  CHECK(first.context == second.context);
  CHECK(b.context(first).algorithm == AlgorithmId::cadence);
  CHECK(b.context(first).backlog_bytes == 10 * kBenchMtu);
  CHECK(b.context(stranger).algorithm == AlgorithmId::dcqcn);
  CHECK(b.contexts_in_use() == 2);
  b.check_sums();
}

TEST_CASE("migration: datagrams that wait go with their handles", "[transport][migration]") {
  MigrationBench b(bench_config(AlgorithmId::fixed));
  QueuePair& qp = b.add_pair(kDefaultDataClass, QpType::ud);
  qp.config.qkey = 5;
  for (int i = 0; i < 2; ++i) {
    AddressHandle& added = b.core.handles.add();
    added.path.ip = host(1);
    added.path.mac = wire::MacAddress::local(1);
    added.path.traffic_class = kDefaultDataClass;
    b.congestion.attach(added);
  }
  AddressHandle& handle = b.core.handles[0];
  WorkRequest request;
  request.opcode = WorkOpcode::send;
  request.length = 700;
  request.local_key = b.region;
  request.address_handle = handle.number;
  for (int i = 0; i < 3; ++i) REQUIRE(Requester(b.core).post(qp, request) == PostResult::ok);
  b.congestion.perform();
  b.congestion.retarget(qp);
  REQUIRE(qp.active);
  const std::uint32_t before = handle.context;
  CHECK(qp.context == before);
  CHECK(b.context(before).backlog_bytes == 2'100);
  b.migration.begin(bench_setup(AlgorithmId::cadence), 0, 0);
  while (handle.context == before) {
    b.core.now = b.migration.next_deadline();
    b.poll();
  }
  REQUIRE(b.core.handles[1].context == before);  // the other one's turn has not come
  CHECK(b.context(before).backlog_bytes == 0);
  b.finish();
  CHECK(b.core.handles[1].context == handle.context);
  const CongestionContext& channel = b.core.contexts[handle.context];
  CHECK(channel.algorithm == AlgorithmId::cadence);
  CHECK(channel.backlog_bytes == 2'100);
  CHECK(qp.context == handle.context);
  CHECK(qp.active);
  CHECK(b.contexts_in_use() == 1);
  CHECK(b.core.peers[handle.peer].datagram_context == kNoIndex);
  CHECK(b.core.peers[handle.peer].context == handle.context);
}

}  // namespace
}  // namespace paceline::transport::test
