// Traffic classes that change from packet to packet (Homa's priorities): every packet says its own
// in DSCP, and packets of one queue pair never rise past those that are in flight.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>
#include <utility>
#include <vector>

#include "dataplane/wire/headers/dscp.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::pair<std::string_view, double> kAllLevels[] = {
    {"priorities", 7}, {"cutoff_1", 2'000}, {"cutoff_2", 20'000}};
constexpr std::pair<std::string_view, double> kNoLevels[] = {{"priorities", 0}};

LabOptions homa_lab(std::span<const std::pair<std::string_view, double>> values = kAllLevels) {
  LabOptions options = small_packets();
  options.engine.peers = PeerPolicy::paceline;
  options.engine.primary = choose_cc(cc::AlgorithmId::homa, options, values);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  return options;
}

struct SentData {
  std::uint32_t qpn = 0;
  Psn psn;
  std::uint8_t traffic_class = 0;
};

// Data of side `from`, as it leaves: the class that the port is given is the header's.
void watch(Lab& lab, unsigned from, std::vector<SentData>& sent) {
  lab.side(from).port.on_departure = [&sent](Picos, const Packet& packet) {
    wire::ParsedPacket parsed;
    REQUIRE(wire::parse_headers(packet.header_view(), packet.payload_bytes, parsed) ==
            wire::ParseError::ok);
    const std::uint8_t said = wire::kDefaultDscpMap.traffic_class(parsed.dscp);
    REQUIRE(said == packet.traffic_class);
    if (packet.payload_bytes != 0) sent.push_back({parsed.dest_qpn, parsed.psn, said});
  };
}

TEST_CASE("classes: by length of the message, and lower behind what may leave without a grant",
          "[transport][packet_class]") {
  Lab lab(homa_lab());
  const Lab::Pair pair = lab.connect();
  std::vector<SentData> sent;
  watch(lab, 0, sent);
  for (const auto& [length, traffic_class] :
       {std::pair{1'000U, 6U}, {10'000U, 5U}, {40'000U, 4U}}) {
    sent.clear();
    REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, length)) == PostResult::ok);
    CHECK(lab.run(picos_from_micros(100'000)));
    CAPTURE(length);
    REQUIRE(sent.size() == (length + kMtu - 1) / kMtu);
    // All of each is in its start; the queue pair was quiet, so that the next may rise.
    CHECK(sent.front().traffic_class == traffic_class);
    CHECK(sent.back().traffic_class ==
          (length < 20'000 ? traffic_class : sent.back().traffic_class));
  }
  sent.clear();
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 0, 0, 1'000'000)) ==
          PostResult::ok);
  CHECK(lab.run(picos_from_micros(100'000)));
  CHECK(sent.front().traffic_class == 4);
  CHECK(sent.back().traffic_class == 0);  // granted, and alone: the lowest
  CHECK(std::is_sorted(sent.begin(), sent.end(), [](const SentData& x, const SentData& y) {
    return x.traffic_class > y.traffic_class;
  }));
  CHECK(lab.leftovers() == "");
}

TEST_CASE(
    "classes: a short message behind a long one of its queue pair does not overtake it; one "
    "of another queue pair does",
    "[transport][packet_class]") {
  Lab lab(homa_lab());
  const Lab::Pair one = lab.connect();
  const Lab::Pair other = lab.connect(300, 400);
  std::vector<SentData> sent;
  watch(lab, 0, sent);
  REQUIRE(lab.post(0, one.a, lab.request(WorkOpcode::write, 1, 0, 0, 1'000'000)) == PostResult::ok);
  REQUIRE(lab.post(0, one.a, lab.request(WorkOpcode::write, 2, 0, 1'000'000, 1'000)) ==
          PostResult::ok);
  lab.run(lab.now() + picos_from_micros(20));
  REQUIRE(lab.post(0, other.a, lab.request(WorkOpcode::write, 3, 0, 2'000'000, 1'000)) ==
          PostResult::ok);
  CHECK(lab.run(picos_from_micros(100'000)));
  CHECK(lab.a().sent().size() == 3);
  std::map<std::uint32_t, std::vector<SentData>> by_pair;
  for (const SentData& s : sent) by_pair[s.qpn].push_back(s);
  REQUIRE(by_pair[one.b].size() > 900);
  for (std::size_t i = 1; i < by_pair[one.b].size(); ++i) {
    CHECK(by_pair[one.b][i].traffic_class <= by_pair[one.b][i - 1].traffic_class);
  }
  REQUIRE(by_pair[other.b].size() == 1);
  CHECK(by_pair[other.b][0].traffic_class == 6);
  CHECK(lab.a().counters().retransmitted_packets == 0);
  CHECK(lab.leftovers() == "");
}

TEST_CASE("classes: off, all goes in the queue pair's own", "[transport][packet_class]") {
  Lab lab(homa_lab(kNoLevels));
  const Lab::Pair pair = lab.connect();
  std::vector<SentData> sent;
  watch(lab, 0, sent);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 500'000));
  CHECK(lab.run(picos_from_micros(100'000)));
  for (const SentData& s : sent) CHECK(s.traffic_class == kDefaultDataClass);
}

// Strange order, losses, READs between WRITEs, both kinds of repair: the bytes are right, and no
// packet that is sent for the first time rises past one of its queue pair that is in flight.
TEST_CASE("classes: random requests over a bad cable arrive whole", "[transport][packet_class]") {
  for (const bool selective : {false, true}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      CAPTURE(seed, selective);
      LabOptions options = homa_lab();
      options.seed = seed;
      options.impairments.drop = 0.01;
      options.tx_burst = seed % 2 == 0 ? 8 : 1;
      options.engine.reliability = selective ? Reliability::selective : Reliability::go_back_n;
      Lab lab(options);
      Lab::fill(lab.a().memory, seed);
      std::vector<Lab::Pair> pairs;
      for (std::uint32_t i = 0; i < 4; ++i) pairs.push_back(lab.connect(100 * i, 1'000 * i));
      Random random(seed, 14);
      std::uint64_t at = 0;
      std::size_t writes = 0;
      for (std::uint64_t id = 0; id < 40; ++id) {
        const std::uint64_t length =
            random.below(4) == 0 ? 1 + random.below(150'000) : 1 + random.below(4'000);
        const Lab::Pair& pair = pairs[random.below(4)];
        if (at + length > 2'000'000) break;
        REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, id, at, at, length)) ==
                PostResult::ok);
        // Memory that no WRITE touches.
        if (random.below(4) == 0) {
          REQUIRE(lab.post(0, pair.a,
                           lab.request(WorkOpcode::read, 1'000 + id, 3'000'000, 3'500'000,
                                       1 + random.below(10'000))) == PostResult::ok);
          ++writes;
        }
        at += length;
        ++writes;
        lab.run(lab.now() + picos_from_micros(static_cast<std::int64_t>(random.below(30))));
      }
      CHECK(lab.run(picos_from_micros(1'000'000)));
      std::size_t good = 0;
      for (const Completion& c : lab.a().sent()) good += c.status == CompletionStatus::success;
      CHECK(good == writes);
      CHECK(equal_memories(lab, at));
      CHECK(lab.leftovers() == "");
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
