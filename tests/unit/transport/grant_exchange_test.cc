// REQUESTs, GRANTs and PATHs between contexts, the wire, and the halves of a proactive algorithm
// that a port has once.
#include "dataplane/transport/congestion/grant_exchange.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <deque>
#include <map>
#include <numeric>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/transport/congestion_bench.h"

namespace paceline::transport::test {
namespace {

using cc::AlgorithmId;

// Says what it is told to, and keeps what it hears.
class FakeAllocator final : public cc::DownlinkAllocator {
 public:
  cc::ChannelCounters* on_request(Nanos, std::uint32_t peer,
                                  const RequestMessage& request) override {
    requests.push_back({peer, request});
    return &channels[peer];
  }
  void on_unaccounted_bytes(std::uint64_t bytes) override { unaccounted += bytes; }
  void on_trimmed_bytes(std::uint64_t bytes) override { trimmed += bytes; }
  void forget(Nanos, std::uint32_t peer) override { forgotten.push_back(peer); }
  std::size_t poll(Nanos, std::span<cc::ReceiverOutput> out) override {
    ++polls;
    std::size_t n = 0;
    for (; n < out.size() && !says.empty(); ++n) {
      out[n] = says.front();
      says.pop_front();
    }
    if (says.empty()) wake = kNeverNanos;
    return n;
  }
  Nanos next_wake() const override { return wake; }

  std::vector<std::pair<std::uint32_t, RequestMessage>> requests;
  std::map<std::uint32_t, cc::ChannelCounters> channels;
  std::vector<std::uint32_t> forgotten;
  std::deque<cc::ReceiverOutput> says;
  Nanos wake = kNeverNanos;
  std::uint64_t unaccounted = 0, trimmed = 0;
  int polls = 0;
};

struct GrantBench : CongestionBench {
  explicit GrantBench(AlgorithmId id = AlgorithmId::cadence) : CongestionBench(bench_config(id)) {}
  FakeAllocator& fake() {
    auto made = std::make_unique<FakeAllocator>();
    FakeAllocator& allocator = *made;
    core.receiver = std::move(made);
    return allocator;
  }
  void request_from(std::uint32_t number, std::uint8_t traffic_class, bool close = false,
                    EcnEcho echo = EcnEcho::cnp) {
    RequestMessage request;
    request.traffic_class = traffic_class;
    request.close = close;
    request.echo_wanted = echo;
    request.demand_bytes = number;
    grants.on_request(from(number, request).parsed, request);
  }
};

TEST_CASE("grants: a message makes one REQUEST, for its channel, ahead of the data",
          "[transport][grants]") {
  GrantBench b;
  b.connect(4);
  QueuePair& qp = b.connect(5, 2);
  b.context(qp).arm = 1;
  b.context(qp).epoch = 9;
  b.begin(qp, 1'000'000);
  b.congestion.deliver_shares();                // a message begins with its share of the uplink
  CHECK_FALSE(b.context(qp).decision.request);  // it has been sent
  b.send_control();
  REQUIRE(b.port.sent.size() == 1);
  CHECK(b.port.sent[0].traffic_class == kControlClass);
  const wire::ParsedPacket to = b.port.sent[0].parsed;
  CHECK(to.destination == host(5));
  CHECK(to.source == b.core.config.address);
  CHECK(b.core.counters.control_bytes ==
        b.core.info.wire.wire_bytes(b.port.sent[0].packet.frame_bytes(), 0));
  const auto requests = b.requests();
  REQUIRE(requests.size() == 1);
  CHECK(requests[0].traffic_class == 2);
  CHECK(requests[0].channel == qp.context);
  CHECK(requests[0].arm == 1);
  CHECK(requests[0].epoch == 9);
  CHECK(requests[0].demand_bytes >= 1'000'000);
  CHECK_FALSE(requests[0].close);
  CHECK(b.core.counters.requests_sent == 1);
  b.congestion.detach(qp);
  const auto last = b.requests();
  REQUIRE(last.size() == 1);
  CHECK(last[0].close);
  CHECK(last[0].channel == requests[0].channel);
}

TEST_CASE("grants: a GRANT is an event for the context of its channel, and for no other",
          "[transport][grants]") {
  GrantBench b;
  std::vector<QueuePair*> pairs{&b.connect(1), &b.connect(2), &b.connect(2, 5)};
  for (QueuePair* qp : pairs) b.begin(*qp, 10'000'000);
  b.congestion.deliver_shares();
  const auto channel = [&](std::size_t i) { return static_cast<std::uint16_t>(pairs[i]->context); };
  CHECK(b.grants.context_of(host(1), 3, channel(0)) == pairs[0]->context);
  CHECK(b.grants.context_of(host(2), 3, channel(1)) == pairs[1]->context);
  CHECK(b.grants.context_of(host(2), 5, channel(2)) == pairs[2]->context);
  CHECK(b.core.counters.control_ignored == 0);
  CHECK(b.grants.context_of(host(2), 5, channel(1)) == kNoIndex);  // not in this class
  CHECK(b.grants.context_of(host(1), 3, channel(1)) == kNoIndex);
  CHECK(b.grants.context_of(host(3), 3, channel(0)) == kNoIndex);  // nobody
  CHECK(b.core.counters.control_ignored == 3);

  std::vector<cc::Decision> before;
  for (QueuePair* qp : pairs) before.push_back(b.context(*qp).decision);
  GrantMessage grant;
  grant.channel = channel(1);
  grant.grant_seq = 1;
  grant.rate_mbps = 5'000;
  grant.lease_us = 100;
  grant.limit_total = 2'000'000;
  cc::Event event;
  event.signal = cc::Signal::grant;
  event.grant = &grant;
  b.congestion.deliver(pairs[1]->context, event);
  b.congestion.deliver_shares();
  CHECK(b.context(*pairs[1]).decision.ceiling == 2'000'000);
  for (const std::size_t other : {0U, 2U}) {
    CHECK(b.context(*pairs[other]).decision.ceiling == before[other].ceiling);
  }
  CHECK(b.grants.violation().empty());
}

TEST_CASE("grants: a REQUEST opens the channel of a peer that is known, and closes it",
          "[transport][grants]") {
  GrantBench b;
  FakeAllocator& allocator = b.fake();
  QueuePair& qp = b.connect(7, 4);
  b.request_from(8, 4);
  b.request_from(7, 5);  // known in another class alone
  CHECK(allocator.requests.empty());
  CHECK(b.core.counters.control_ignored == 2);
  b.request_from(7, 4, false, EcnEcho::none);
  REQUIRE(allocator.requests.size() == 1);
  CHECK(allocator.requests[0].first == qp.peer);
  CHECK(allocator.requests[0].second.demand_bytes == 7);
  CHECK(b.core.peers[qp.peer].echo == EcnEcho::none);
  CHECK(b.core.peers[qp.peer].counters == &allocator.channels[qp.peer]);
  b.request_from(7, 4, true);
  CHECK(b.core.peers[qp.peer].counters == nullptr);
  CHECK(allocator.requests.size() == 2);
  // A peer that is gone is forgotten once, if it had a channel.
  b.grants.forget_peer(qp.peer);
  CHECK(allocator.forgotten.empty());
  b.request_from(7, 4);
  b.congestion.detach(qp);
  CHECK(allocator.forgotten == std::vector<std::uint32_t>{0});
  CHECK(b.core.peers[0].counters == nullptr);
  b.core.receiver.reset();
  b.request_from(7, 4);
  CHECK(b.core.counters.control_ignored == 3);
}

TEST_CASE("grants: every byte that came is a channel's, or is told as unaccounted",
          "[transport][grants]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  GrantBench b;
  FakeAllocator& allocator = b.fake();
  for (std::uint32_t i = 0; i < 6; ++i) b.connect(i);
  std::uint64_t bytes = 0, packets_in_channels = 0, marked = 0, cut = 0;
  for (int step = 0; step < 3000; ++step) {
    const auto i = static_cast<std::uint32_t>(random.below(6));
    switch (random.below(10)) {
      case 0:
        b.request_from(i, kDefaultDataClass, random.below(3) == 0);
        break;
      case 1:
        allocator.wake = to_nanos(b.core.now);
        b.grants.poll_downlink();
        REQUIRE(b.core.unaccounted_bytes == 0);
        REQUIRE(b.core.trimmed_bytes == 0);
        REQUIRE(allocator.trimmed == cut);
        break;
      case 2:
        b.grants.count_unaccounted(84);
        bytes += 84;
        b.core.trimmed_bytes += 7;
        cut += 7;
        break;
      default: {
        Packet packet{};
        packet.wire_bytes = static_cast<std::uint32_t>(84 + random.below(4000));
        wire::ParsedPacket parsed{};
        parsed.udp_source_port = static_cast<std::uint16_t>(0xC000 + i);
        parsed.ecn = random.below(4) == 0 ? Ecn::ce : Ecn::ect0;
        cc::ChannelCounters* const counters = b.core.peers[i].counters;
        b.grants.count_data(counters, parsed, packet);
        bytes += packet.wire_bytes;
        if (counters == nullptr) break;
        ++packets_in_channels;
        marked += parsed.ecn == Ecn::ce ? 1 : 0;
        if (parsed.ecn == Ecn::ce) REQUIRE(counters->last_marked_entropy == 0xC000 + i);
        break;
      }
    }
    std::uint64_t in_channels = 0, packets = 0, ce = 0;
    for (const auto& [peer, counters] : allocator.channels) {
      in_channels += counters.rx_bytes;
      packets += counters.rx_packets;
      ce += counters.ce_packets;
    }
    REQUIRE(in_channels + allocator.unaccounted + b.core.unaccounted_bytes == bytes);
    REQUIRE(packets == packets_in_channels);
    REQUIRE(ce == marked);
  }
  CHECK(packets_in_channels > 300);
}

TEST_CASE("grants: all that the allocator says goes out, when it is due, to whom it is for",
          "[transport][grants]") {
  GrantBench b;
  FakeAllocator& allocator = b.fake();
  std::vector<std::uint32_t> peers;
  for (std::uint32_t i = 0; i < 20; ++i) {
    peers.push_back(b.connect(i, static_cast<std::uint8_t>(i % 5)).peer);
  }
  for (std::uint32_t i = 0; i < 40; ++i) {  // more than one poll has room for
    cc::ReceiverOutput out;
    out.peer = peers[i % 20];
    out.grant.grant_seq = static_cast<std::uint16_t>(i);
    allocator.says.push_back(out);
  }
  allocator.wake = to_nanos(b.core.now) + Nanos{2'000};
  CHECK(b.grants.next_deadline() == b.core.now + picos_from_micros(2));
  b.core.now = b.core.now + picos_from_micros(1);
  b.grants.poll_downlink();
  CHECK(allocator.polls == 0);
  b.core.now = b.core.now + picos_from_micros(1);
  b.grants.poll_downlink();
  b.send_control();
  REQUIRE(b.port.sent.size() == 40);
  for (std::uint32_t i = 0; i < 40; ++i) {
    const wire::ParsedPacket to = b.port.sent[i].parsed;
    CHECK(to.destination == host(i % 20));
    const auto body = wire::control_body(b.port.sent[i].packet.header_view(), to);
    GrantMessage grant;
    REQUIRE(wire::parse_control(body, grant) == wire::ParseError::ok);
    CHECK(grant.peer_count_hint == peer_count_hint_of(4));  // in its class
    CHECK(grant.traffic_class == i % 20 % 5);
    CHECK(grant.grant_seq == i);
  }
  CHECK(b.core.counters.grants_sent == 40);
}

TEST_CASE("grants: contexts that ask at once share the uplink, and nothing is broken",
          "[transport][grants]") {
  GrantBench b(GENERATE(AlgorithmId::cadence, AlgorithmId::sird, AlgorithmId::eqds));
  for (std::uint32_t i = 0; i < 5; ++i) b.begin(b.connect(i), 1'000'000);
  REQUIRE(b.grants.active());
  b.congestion.deliver_shares();
  CHECK_FALSE(b.grants.uplink_due());
  CHECK(b.grants.next_deadline() > b.core.now);
  CHECK(b.grants.violation().empty());
}

TEST_CASE("grants: the halves follow the setup", "[transport][grants]") {
  GrantBench b(AlgorithmId::fixed);
  CHECK_FALSE(b.grants.active());
  CHECK(b.grants.next_deadline() == kNever);
  const auto change = [&](AlgorithmId id) {
    b.grants.take_setup(b.setups.install(bench_setup(id), 0, 0));
  };
  change(AlgorithmId::cadence);
  CHECK(b.grants.active());
  cc::DownlinkAllocator* const first = b.core.receiver.get();
  REQUIRE(first != nullptr);
  QueuePair& qp = b.connect(1);
  b.request_from(1, kDefaultDataClass);
  cc::ChannelCounters* const counters = b.core.peers[qp.peer].counters;
  CHECK(counters != nullptr);
  change(AlgorithmId::cadence);  // other values: the same halves
  CHECK(b.core.receiver.get() == first);
  CHECK(b.core.peers[qp.peer].counters == counters);
  change(AlgorithmId::sird);  // another algorithm's
  REQUIRE(b.core.receiver != nullptr);
  CHECK(b.core.peers[qp.peer].counters == nullptr);
  b.request_from(1, kDefaultDataClass);
  change(AlgorithmId::swift);
  CHECK(b.grants.settle());  // peers that are late are served
  CHECK(b.grants.active());
  b.grants.drop_downlink();
  CHECK(b.core.peers[qp.peer].counters == nullptr);
  CHECK_FALSE(b.grants.active());
  CHECK_FALSE(b.grants.settle());
}

TEST_CASE("grants: who does not speak the control protocol grants nothing", "[transport][grants]") {
  EngineConfig config = bench_config(AlgorithmId::cadence);
  config.speak_control = false;
  const CongestionBench b(config);
  CHECK(b.core.receiver == nullptr);
}

}  // namespace
}  // namespace paceline::transport::test
