// Peers, what they say of themselves by HELLO, and what they are told of the number of others.
#include "dataplane/transport/congestion/peer_directory.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/transport/congestion_bench.h"

namespace paceline::transport::test {
namespace {

EngineConfig asking_config() {
  EngineConfig config = bench_config(cc::AlgorithmId::cadence);
  config.peers = PeerPolicy::discover;
  return config;
}

struct DirectoryBench : CongestionBench {
  explicit DirectoryBench(const EngineConfig& config = asking_config()) : CongestionBench(config) {}
  std::uint32_t add(std::uint32_t number, std::uint8_t traffic_class = kDefaultDataClass) {
    return peers.add(host(number), wire::MacAddress::local(100 + number), traffic_class);
  }
  std::optional<PeerNews> hear(std::uint32_t number, const HelloMessage& hello) {
    const Arrived arrived = from(number, hello);
    return peers.on_hello(arrived.parsed, arrived.packet);
  }
};

TEST_CASE("peers: what one is taken for before it has spoken", "[transport][peers]") {
  struct Case {
    PeerPolicy policy;
    cc::AlgorithmId primary;
    Reliability reliability;
    bool speaks;
    PeerStatus status;
    bool selective;
  };
  using enum PeerPolicy;
  using cc::AlgorithmId;
  constexpr auto kGoBack = Reliability::go_back_n, kSelective = Reliability::selective;
  for (const Case& c : {
           Case{paceline, AlgorithmId::fixed, kGoBack, true, PeerStatus::paceline, false},
           Case{paceline, AlgorithmId::fixed, kSelective, true, PeerStatus::paceline, true},
           Case{paceline, AlgorithmId::cadence, kSelective, false, PeerStatus::roce, false},
           Case{roce, AlgorithmId::cadence, kSelective, true, PeerStatus::roce, false},
           Case{discover, AlgorithmId::fixed, kGoBack, true, PeerStatus::roce, false},
           Case{discover, AlgorithmId::fixed, kSelective, true, PeerStatus::unknown, false},
           Case{discover, AlgorithmId::cadence, kGoBack, true, PeerStatus::unknown, false},
           Case{discover, AlgorithmId::cadence, kGoBack, false, PeerStatus::roce, false},
       }) {
    EngineConfig config = bench_config(c.primary);
    config.peers = c.policy;
    config.reliability = c.reliability;
    config.speak_control = c.speaks;
    DirectoryBench b(config);
    const Peer& peer = b.core.peers[b.add(1)];
    CHECK(peer.status == c.status);
    CHECK(peer.selective == c.selective);
    CHECK(b.peers.waiting() == (c.status == PeerStatus::unknown));
    b.peers.poll();
    CHECK(b.hellos().size() == (c.status == PeerStatus::unknown ? 1 : 0));
  }
}

TEST_CASE("peers: one that does not answer is asked three times, and then taken for a stranger",
          "[transport][peers]") {
  DirectoryBench b;
  const std::uint32_t index = b.add(1, 5);
  CHECK(b.add(1, 5) == index);  // another queue pair: the same entry, no other question
  CHECK(b.core.control_active);
  for (unsigned n = 0; n < kHelloTries; ++n) {
    CHECK(b.core.peers[index].status == PeerStatus::unknown);
    CHECK(b.peers.next_deadline() == b.core.now);
    b.peers.poll();
    const auto said = b.hellos();
    REQUIRE(said.size() == 1);
    CHECK_FALSE(said[0].reply);
    CHECK(said[0].traffic_class == 5);
    CHECK(said[0].link_mbps == 100'000);
    CHECK(said[0].mtu_bytes == kBenchMtu);
    CHECK(said[0].timestamp_ns == static_cast<std::uint64_t>(to_nanos(b.core.now).count));
    CHECK(said[0].peer_count_hint == peer_count_hint_of(1));
    CHECK(b.peers.next_deadline() == b.core.now + b.core.config.hello_interval);
    b.core.now = b.core.now + b.core.config.hello_interval - Picos{1};
    b.peers.poll();
    CHECK(b.hellos().empty());
    b.core.now = b.core.now + Picos{1};
  }
  b.peers.poll();
  CHECK(b.hellos().empty());
  CHECK(b.core.peers[index].status == PeerStatus::roce);
  CHECK_FALSE(b.peers.waiting());
  CHECK(b.peers.next_deadline() == kNever);
  CHECK(b.core.counters.hellos_sent == kHelloTries);
}

TEST_CASE("peers: a HELLO names what this end can do", "[transport][peers]") {
  const bool grants = GENERATE(false, true), repairs = GENERATE(false, true);
  const bool several = GENERATE(false, true);
  EngineConfig config = bench_config(grants ? cc::AlgorithmId::cadence : cc::AlgorithmId::fixed);
  config.peers = PeerPolicy::discover;
  config.reliability = repairs ? Reliability::selective : Reliability::go_back_n;
  config.multipath = several ? Multipath::packet : Multipath::none;
  DirectoryBench b(config);
  b.hear(1, {});
  const auto said = b.hellos();
  REQUIRE(said.size() == 1);
  CHECK(said[0].features == ((grants ? kFeatureGrants : 0) | (repairs ? kFeatureXack : 0) |
                             (repairs && several ? kFeatureMultipath : 0)));
}

TEST_CASE("peers: a question is answered, whoever asks; an answer is news of a peer that is known",
          "[transport][peers]") {
  DirectoryBench b;
  HelloMessage question;
  question.traffic_class = 3;
  question.timestamp_ns = 1234;
  question.features = kFeatureGrants;
  question.peer_count_hint = 4;
  CHECK_FALSE(b.hear(8, question).has_value());
  auto said = b.hellos();
  REQUIRE(said.size() == 1);
  CHECK(said[0].reply);
  CHECK(said[0].timestamp_echo_ns == 1234);
  CHECK(said[0].traffic_class == 3);

  const std::uint32_t index = b.add(8);
  b.peers.poll();
  CHECK(b.hellos().size() == 1);
  question.reply = true;
  const auto news = b.hear(8, question);
  REQUIRE(news.has_value());
  CHECK(news->peer == index);
  CHECK(news->features == kFeatureGrants);
  CHECK(news->peer_count_hint == 4);
  CHECK(b.core.peers[index].heard);
  CHECK(b.core.peers[index].features == kFeatureGrants);
  CHECK(b.hellos().empty());                          // nobody answers answers
  b.core.peers[index].status = PeerStatus::paceline;  // as Migration has it
  b.core.now = b.core.now + b.core.config.hello_interval;
  b.peers.poll();
  CHECK_FALSE(b.peers.waiting());
  CHECK(b.hellos().empty());

  question.traffic_class = 4;  // the peer is known in another class
  CHECK_FALSE(b.hear(8, question).has_value());
  question.version_min = question.version_max = kControlProtocolVersion + 1;
  question.reply = false;
  question.traffic_class = 3;
  CHECK_FALSE(b.hear(8, question).has_value());
  CHECK(b.hellos().empty());
  CHECK(b.core.counters.hellos_received == 4);

  auto cut = b.from(8, HelloMessage{});
  cut.parsed.header_bytes =
      static_cast<decltype(cut.parsed.header_bytes)>(cut.parsed.header_bytes - 8);
  CHECK_FALSE(b.peers.on_hello(cut.parsed, cut.packet).has_value());
  CHECK(b.core.counters.hellos_received == 4);
  CHECK(b.core.counters.malformed[static_cast<std::size_t>(wire::ParseError::control_length)] == 1);
}

TEST_CASE("peers: where nobody is to be discovered a HELLO is answered, and is no news",
          "[transport][peers]") {
  DirectoryBench b(bench_config(cc::AlgorithmId::cadence));
  b.add(8);
  HelloMessage question;
  question.traffic_class = kDefaultDataClass;
  CHECK_FALSE(b.hear(8, question).has_value());
  CHECK(b.hellos().size() == 1);
  b.peers.resend_hellos();
  CHECK_FALSE(b.peers.waiting());
}

// Hosts take turns at two classes. The model is the rule alone: what is told is the number's
// logarithm; it follows at once upwards, and from a quarter on downwards.
TEST_CASE("peers: all that are connected know the number of peers of their class",
          "[transport][peers]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  Random random(seed);
  EngineConfig config = asking_config();
  config.expected_peers[2] = seed == 4 ? 6 : 0;
  DirectoryBench b(config);
  constexpr std::uint32_t kHosts = 60;
  std::vector<std::uint32_t> uses(kHosts, 0), entry(kHosts, kNoIndex);
  constexpr std::array<std::uint8_t, 2> kClasses{2, kDefaultDataClass};
  const auto class_of = [&](std::uint32_t i) { return kClasses[i % 2]; };
  std::array<std::uint32_t, kTrafficClasses> connected{};
  std::array<std::uint8_t, kTrafficClasses> hints{};
  hints[2] = peer_count_hint_of(config.expected_peers[2]);
  bool growing = true;
  std::uint64_t messages = 0;
  for (int step = 0; step < 2000; ++step) {
    if (random.below(150) == 0) growing = !growing;
    const auto i = static_cast<std::uint32_t>(random.below(kHosts));
    if (random.below(4) == 0 ? !growing : growing) {
      entry[i] = b.add(i, class_of(i));
      b.core.peers[entry[i]].status = PeerStatus::paceline;
      connected[class_of(i)] += uses[i]++ == 0 ? 1 : 0;
    } else if (uses[i] != 0) {
      const bool last = --uses[i] == 0;
      REQUIRE(b.peers.release(entry[i]) == last);
      connected[class_of(i)] -= last ? 1 : 0;
    }
    for (const std::uint8_t c : kClasses) {
      const auto exact = peer_count_hint_of(std::max(connected[c], config.expected_peers[c]));
      if (exact > hints[c] || exact + 1 < hints[c]) hints[c] = exact;
      REQUIRE(b.peers.peer_count_hint(c) == hints[c]);
    }
    b.peers.poll();
    for (const HelloMessage& said : b.hellos()) {
      REQUIRE(said.peer_count_hint == hints[said.traffic_class]);
      ++messages;
    }
    for (std::uint32_t k = 0; k < kHosts; ++k) {
      // New peers have not been asked anything: they are told with the next change.
      if (uses[k] != 0 && b.core.peers[entry[k]].told != 0) {
        REQUIRE(b.core.peers[entry[k]].told == hints[class_of(k)]);
      }
    }
    // The answers.
    for (std::uint32_t k = 0; k < kHosts; ++k) {
      if (entry[k] != kNoIndex) b.core.peers[entry[k]].greeting = false;
    }
    b.peers.poll();
    REQUIRE_FALSE(b.peers.waiting());
  }
  CHECK(messages > 50);
}

TEST_CASE("peers: a HELLO that tells of growth has tries of its own", "[transport][peers]") {
  DirectoryBench b;
  const std::uint32_t index = b.add(1);
  b.peers.poll();
  b.core.peers[index].status = PeerStatus::paceline;
  b.peers.poll();
  CHECK(b.hellos().size() == 1);
  CHECK_FALSE(b.peers.waiting());
  b.peers.tell_growth(index);  // it knows
  CHECK_FALSE(b.peers.waiting());
  b.core.peers[index].told = 0;
  b.peers.tell_growth(index);
  b.peers.tell_growth(index);
  for (unsigned n = 0; n < kHelloTries; ++n) {
    b.peers.poll();
    CHECK(b.hellos().size() == 1);
    b.core.now = b.core.now + b.core.config.hello_interval;
  }
  b.peers.poll();
  CHECK(b.hellos().empty());
  CHECK_FALSE(b.peers.waiting());
  CHECK(b.core.peers[index].status == PeerStatus::paceline);  // it has spoken once
}

TEST_CASE("peers: an answer ends the tries", "[transport][peers]") {
  DirectoryBench b;
  const std::uint32_t index = b.add(1);
  b.core.peers[index].status = PeerStatus::paceline;
  b.peers.tell_growth(index);
  b.peers.poll();
  CHECK(b.hellos().size() == 1);
  CHECK(b.peers.waiting());
  HelloMessage answer;
  answer.reply = true;
  answer.traffic_class = kDefaultDataClass;
  CHECK(b.hear(1, answer).has_value());
  b.core.now = b.core.now + b.core.config.hello_interval;
  b.peers.poll();
  CHECK(b.hellos().empty());
  CHECK_FALSE(b.peers.waiting());
}

TEST_CASE("peers: when this end can do more, all are asked again", "[transport][peers]") {
  DirectoryBench b;
  const std::uint32_t silent = b.add(1), granting = b.add(2);
  b.core.peers[silent].status = PeerStatus::roce;
  b.core.peers[granting].status = PeerStatus::paceline;
  b.core.peers[granting].features = kFeatureGrants;
  b.peers.poll();
  b.hellos();
  CHECK_FALSE(b.peers.waiting());
  b.peers.resend_hellos();
  CHECK(b.core.peers[silent].status == PeerStatus::unknown);
  CHECK(b.core.peers[granting].status == PeerStatus::paceline);
  b.peers.poll();
  CHECK(b.hellos().size() == 2);
}

}  // namespace
}  // namespace paceline::transport::test
