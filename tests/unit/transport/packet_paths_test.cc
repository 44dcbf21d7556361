// The ways of packets in and out, without an engine: who gets what comes, and in which order the
// port is offered what goes.
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/transport/receive_path.h"
#include "dataplane/transport/transmit_path.h"
#include "tests/unit/transport/congestion_bench.h"
#include "tests/unit/transport/witness.h"

namespace paceline::transport::test {
namespace {

using cc::AlgorithmId;
using wire::ParseError;

struct PathBench : CongestionBench {
  using CongestionBench::CongestionBench;
  ~PathBench() {
    for (QueuePair* qp : core.qps) {
      requester.discard(*qp);
      responder.discard(*qp);
    }
    transmit.discard();
    CHECK(core.pool.in_use() == 0);
  }
  // The packet, which is another pool's, comes in.
  void arrive(const Packet& packet) {
    Packet* const own = copy(packet);
    receive.receive(own);
  }
  Packet* copy(const Packet& packet) {
    Packet* const own = core.pool.alloc();
    std::byte* const payload = own->payload;
    const std::uint16_t pool = own->pool_id;
    *own = packet;
    own->payload = payload;
    own->pool_id = pool;
    own->next = nullptr;
    own->wire_bytes = core.info.wire.wire_bytes(own->frame_bytes(), own->payload_bytes);
    return own;
  }
  std::uint64_t malformed(ParseError error) const {
    return core.counters.malformed[static_cast<std::size_t>(error)];
  }
  // Data as far as nothing but the port holds it up.
  void send_all() {
    for (int i = 0; i < 100'000; ++i) {
      if (scheduler.due()) congestion.run_due();
      if (scheduler.has_ready()) transmit.send();
      const Picos next = scheduler.next_deadline();
      if (next == kNever) return;
      core.now = later(core.now + Picos{1}, next);
    }
    FAIL("there is no end to it");
  }

  Requester requester{core};
  Responder responder{core};
  TransmitPath transmit{core, scheduler, congestion, requester};
  ReceivePath receive{core, requester, responder, grants, congestion, peers, migration};
};

// `a` sends to `b`, whose packets come back.
struct TwoPaths {
  static EngineConfig config_of(std::uint32_t number, const EngineConfig& from) {
    EngineConfig config = from;
    config.address = host(number);
    return config;
  }
  explicit TwoPaths(const EngineConfig& config = bench_config())
      : a(config_of(1, config)), b(config_of(2, config)), at_a(a.connect(2)), at_b(b.connect(1)) {
    at_a.remote_number = at_b.number;
    at_b.remote_number = at_a.number;
    at_b.responder.position.start(Psn(100));
    at_a.responder.position.start(Psn(100));
  }
  // What has left one end comes to the other.
  static void carry(PathBench& from, PathBench& to) {
    from.transmit.flush_control();
    const auto sent = std::move(from.port.sent);
    from.port.sent.clear();
    for (const auto& one : sent) to.arrive(one.packet);
  }

  PathBench a, b;
  QueuePair& at_a;
  QueuePair& at_b;
};

TEST_CASE("receive path: data goes to the responder, its answer to the requester",
          "[transport][paths]") {
  TwoPaths t;
  t.a.begin(t.at_a, 5 * kBenchMtu);
  t.a.send_all();
  CHECK(t.a.port.sent.size() == 5);
  TwoPaths::carry(t.a, t.b);
  CHECK(t.b.core.counters.rx_packets == 5);
  CHECK(t.b.core.counters.rx_data_packets == 5);
  CHECK(t.b.core.counters.rx_wire_bytes == t.a.core.counters.tx_wire_bytes);
  CHECK(t.b.core.unaccounted_bytes == t.b.core.counters.rx_wire_bytes);  // it has no channel
  TwoPaths::carry(t.b, t.a);
  CHECK(t.a.core.counters.acks_received != 0);
  CHECK(t.at_a.requester.queue.empty());
  CHECK(t.a.context(t.at_a).inflight_bytes == 0);
  CHECK(t.a.core.counters.completions == 1);
}

TEST_CASE("receive path: what is for nobody, from strangers or damaged is counted and freed",
          "[transport][paths]") {
  TwoPaths t;
  t.a.begin(t.at_a, 100);
  t.a.send_all();
  REQUIRE(t.a.port.sent.size() == 1);
  const Packet good = t.a.port.sent[0].packet;

  Packet corrupt = good;
  corrupt.flags = packet_flag::corrupt;
  t.b.arrive(corrupt);
  CHECK(t.b.malformed(ParseError::corrupt) == 1);
  Packet cut = good;
  cut.header_bytes = 20;
  t.b.arrive(cut);
  std::uint64_t all = 0;
  for (const std::uint64_t n : t.b.core.counters.malformed) all += n;
  CHECK(all == 2);
  CHECK(t.b.core.unaccounted_bytes == 0);

  const QueuePair& other = t.b.connect(7);  // of another peer
  t.at_a.remote_number = other.number;
  t.a.begin(t.at_a, 100);
  t.at_a.remote_number = EngineCore::qp_number(77, 0);
  t.a.begin(t.at_a, 100);
  t.at_a.remote_number = other.number;
  t.a.send_all();
  TwoPaths::carry(t.a, t.b);
  CHECK(t.b.core.counters.no_queue_pair == 2);
  CHECK(t.b.core.counters.rx_packets == 5);
  CHECK(t.b.core.counters.rx_data_packets == 1);
  CHECK(t.b.core.pool.in_use() == (t.b.core.control_head == nullptr ? 0 : 1));
}

TEST_CASE("receive path: a CNP is heard by the algorithm of its queue pair", "[transport][paths]") {
  Witness w;
  PathBench b(w.config());
  QueuePair& qp = b.connect(1);
  b.connect(1);
  w.heard.clear();
  wire::FlowAddressing flow;
  flow.source = host(1);
  flow.destination = b.core.config.address;
  Packet packet{};
  packet.header_bytes = static_cast<std::uint16_t>(wire::build_cnp(
      wire::make_header_template(flow), wire::HeaderBuffer{packet.header}, qp.number));
  b.arrive(packet);
  // Plain headers, 16 bytes of nothing, ICRC, FCS, preamble and gap.
  constexpr std::uint64_t packet_bytes = EngineCore::kPlainHeaderBytes + 16 + 4 + 4 + 20;
  REQUIRE(w.heard.size() == 1);
  CHECK(w.heard[0].signal == PACELINE_CC_CNP);
  CHECK(w.of(b.context(qp)).size() == 1);
  CHECK(b.core.counters.cnps_received == 1);
  CHECK(b.core.unaccounted_bytes == packet_bytes);
}

TEST_CASE("receive path: control messages go to the exchange of grants and to the directory",
          "[transport][paths]") {
  const bool speaks = GENERATE(true, false);
  EngineConfig config = bench_config(AlgorithmId::cadence);
  config.speak_control = speaks;
  config.peers = PeerPolicy::discover;
  PathBench b(config);
  QueuePair& qp = b.connect(1);
  HelloMessage hello;
  hello.reply = true;
  hello.traffic_class = kDefaultDataClass;
  hello.features = kFeatureGrants;
  b.arrive(b.from(1, hello).packet);
  RequestMessage request;
  request.traffic_class = kDefaultDataClass;
  request.demand_bytes = 50'000;
  b.arrive(b.from(1, request).packet);
  b.begin(qp, 1'000'000);
  b.congestion.deliver_shares();
  GrantMessage grant;
  grant.channel = static_cast<std::uint16_t>(qp.context);
  grant.traffic_class = kDefaultDataClass;
  grant.grant_seq = 1;
  grant.rate_mbps = 5'000;
  grant.lease_us = 100;
  grant.limit_total = 777'000;
  b.arrive(b.from(1, grant).packet);
  grant.channel = 99;
  b.arrive(b.from(1, grant).packet);
  const telemetry::EngineCounters& c = b.core.counters;
  CHECK(c.hellos_received == (speaks ? 1 : 0));
  CHECK(c.requests_received == (speaks ? 1 : 0));
  CHECK(c.grants_received == (speaks ? 2 : 0));
  CHECK(c.control_ignored == (speaks ? 1 : 4));  // no such channel
  CHECK(b.core.unaccounted_bytes == c.rx_wire_bytes);
  CHECK((b.core.peers[qp.peer].counters != nullptr) == speaks);
  CHECK(b.context(qp).algorithm == (speaks ? AlgorithmId::cadence : AlgorithmId::dcqcn));
  if (speaks) CHECK(b.context(qp).decision.ceiling == 777'000);

  auto broken = b.from(1, grant);
  broken.packet.header_bytes = static_cast<std::uint16_t>(broken.packet.header_bytes - 8);
  b.arrive(broken.packet);
  CHECK(c.grants_received == (speaks ? 2 : 0));
}

TEST_CASE("receive path: a round trip ends when the packet came, where packets say when that was",
          "[transport][paths]") {
  TwoPaths t;
  t.a.begin(t.at_a, 100);
  const Picos sent = t.a.core.now;
  t.a.send_all();
  TwoPaths::carry(t.a, t.b);
  t.b.transmit.flush_control();
  REQUIRE(t.b.port.sent.size() == 1);
  t.a.core.now = sent + picos_from_micros(50);
  const bool stamped = GENERATE(true, false);
  Packet* packet = t.a.copy(t.b.port.sent[0].packet);
  packet->time = stamped ? sent + picos_from_micros(3) : Picos{0};
  t.a.receive.receive_stamped({&packet, 1});
  CHECK(t.at_a.requester.round_trip.smoothed_ns() == (stamped ? 3'000 : 50'000));
  CHECK_FALSE(t.a.core.stamped);
}

TEST_CASE("transmit path: control packets go in order, as many as the port takes",
          "[transport][paths]") {
  PathBench b;
  const std::uint32_t peer = b.connect(1).peer;
  for (std::uint16_t i = 0; i < 10; ++i) {
    GrantMessage grant;
    grant.grant_seq = i;
    std::uint64_t counter = 0;
    b.messages.send(b.core.peers[peer].control, grant, counter);
  }
  b.port.ready_at[kControlClass] = b.core.now + Picos{1};
  b.transmit.flush_control();
  CHECK(b.port.sent.empty());
  b.core.now = b.core.now + Picos{1};
  b.port.room = 4;
  b.transmit.flush_control();
  CHECK(b.port.sent.size() == 4);
  CHECK(b.core.counters.tx_control_packets == 4);
  b.port.room = 100;
  b.transmit.flush_control();
  CHECK(b.core.control_head == nullptr);
  CHECK(b.core.control_tail == nullptr);
  const auto grants = b.grant_messages();
  REQUIRE(grants.size() == 10);
  for (std::size_t i = 0; i < 10; ++i) CHECK(grants[i].grant_seq == i);
}

TEST_CASE("transmit path: the port refuses at random, and packets leave in order all the same",
          "[transport][paths]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  PathBench b;
  std::vector<QueuePair*> pairs;
  for (std::uint32_t i = 0; i < 4; ++i) {
    pairs.push_back(&b.connect(i, static_cast<std::uint8_t>(2 + i % 2)));
    pairs[i]->remote_number = EngineCore::qp_number(i, 0);
    b.begin(*pairs[i], 60 * kBenchMtu);
  }
  for (int step = 0; step < 4000 && b.port.sent.size() < 4 * 60; ++step) {
    b.port.room = random.below(3);
    if (b.scheduler.due()) b.congestion.run_due();
    if (b.scheduler.has_ready()) b.transmit.send();
    b.core.now = b.core.now + picos_from_nanos(static_cast<std::int64_t>(20 + random.below(100)));
  }
  REQUIRE(b.port.sent.size() == 4 * 60);
  std::vector<std::uint32_t> next(4, 100);
  for (const auto& sent : b.port.sent) {
    const std::uint32_t i = EngineCore::qp_slot(sent.parsed.dest_qpn);
    REQUIRE(sent.parsed.psn == Psn(next[i]++));
    REQUIRE(sent.traffic_class == 2 + i % 2);
  }
  CHECK(b.core.counters.tx_stalled > 10);
  CHECK(b.core.pool.in_use() == 0);
}

TEST_CASE("transmit path: higher classes first; a class that the port does not take holds up none",
          "[transport][paths]") {
  PathBench b;
  QueuePair& low = b.connect(1, 2);
  QueuePair& high = b.connect(2, 5);
  for (QueuePair* qp : {&low, &high}) b.begin(*qp, 100);
  const bool paused = GENERATE(false, true);
  if (paused) b.port.ready_at[5] = kNever;
  b.transmit.send();
  REQUIRE(b.port.sent.size() == (paused ? 1 : 2));
  CHECK(b.port.sent[0].traffic_class == (paused ? 2 : 5));
  b.port.ready_at[5] = Picos{0};
  b.send_all();
  CHECK(b.port.sent.size() == 2);
}

TEST_CASE("transmit path: a port that takes nothing for long has lost its link",
          "[transport][paths]") {
  PathBench b;
  QueuePair& qp = b.connect(1);
  b.begin(qp, 3 * kBenchMtu);
  b.port.room = 0;
  b.transmit.send();
  CHECK(b.core.pool.in_use() == 1);  // kept
  b.core.now = b.core.now + picos_from_micros(99'999);
  b.congestion.run_due();
  b.transmit.send();
  CHECK_FALSE(b.scheduler.backlog().empty(kDefaultDataClass));
  b.core.now = b.core.now + picos_from_micros(1);
  b.transmit.send();
  CHECK(b.core.pool.in_use() == 0);
  CHECK(b.port.sent.empty());
}

TEST_CASE("transmit path: without a packet a context waits a microsecond", "[transport][paths]") {
  PathBench b;
  QueuePair& qp = b.connect(1);
  b.begin(qp, 100);
  std::vector<Packet*> all;
  while (Packet* packet = b.core.pool.alloc()) all.push_back(packet);
  b.transmit.send();
  CHECK(b.core.counters.no_packet == 1);
  CHECK(b.context(qp).place == ContextPlace::paced);
  CHECK(b.scheduler.next_deadline() == b.core.now + picos_from_micros(1));
  for (Packet* packet : all) b.core.pool.free(packet);
  b.send_all();
  CHECK(b.port.sent.size() == 1);
}

TEST_CASE("transmit path: the algorithm hears of the last byte, and a wake-up before the next one",
          "[transport][paths]") {
  Witness w;
  PathBench b(w.config());
  QueuePair& qp = b.connect(1);
  b.begin(qp, 2 * kBenchMtu);
  b.context(qp).decision.wake_bytes = 100;
  w.heard.clear();
  b.send_all();
  REQUIRE(w.heard.size() == 2);
  CHECK(w.heard[0].signal == PACELINE_CC_TICK);
  CHECK(w.heard[0].backlog_bytes == kBenchMtu);
  CHECK(w.heard[1].signal == PACELINE_CC_IDLE);
  CHECK(b.port.sent.size() == 2);
  CHECK_FALSE(qp.active);
}

TEST_CASE("transmit path: a packet in line goes behind the data that was built before it",
          "[transport][paths]") {
  PathBench b;
  QueuePair& qp = b.connect(1);
  b.begin(qp, 2 * kBenchMtu);
  b.port.room = 0;
  b.transmit.send();  // the first is built, and refused
  Packet* const packet = b.core.pool.alloc();
  packet->header_bytes = static_cast<std::uint16_t>(
      wire::build_cnp(qp.header, wire::HeaderBuffer{packet->header}, 99));
  packet->traffic_class = kDefaultDataClass;
  packet->payload_bytes = 0;
  packet->payload_kind = PayloadKind::none;
  b.core.actions.send_in_line(packet);
  b.congestion.perform();
  b.port.room = 100;
  b.send_all();
  REQUIRE(b.port.sent.size() == 3);
  CHECK(b.port.sent[0].parsed.psn == Psn(100));
  CHECK(b.port.sent[1].parsed.dest_qpn == 99);
  CHECK(b.port.sent[2].parsed.psn == Psn(101));
}

}  // namespace
}  // namespace paceline::transport::test
