// What congestion control an engine has, and for whom: setups, arms by peer, the watch over
// plug-ins; and the packets that wait for the port.
#include "dataplane/transport/congestion/congestion_setups.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cc/plugin/call.h"
#include "cc/rate/fixed.h"
#include "dataplane/base/numbers/random.h"
#include "dataplane/transport/congestion/port_backlog.h"
#include "tests/unit/transport/congestion_bench.h"

namespace paceline::transport::test {
namespace {

using cc::AlgorithmId;

struct SetupsBench : CoreBench {
  explicit SetupsBench(AlgorithmId primary = AlgorithmId::fixed)
      : CoreBench(bench_config(primary)) {}
  std::uint64_t fixed_bps(std::uint8_t slot) const {
    return core.params_on(slot, AlgorithmId::fixed).as<cc::Fixed::Params>().rate.bps;
  }
  Peer& add_peer(std::uint32_t number) {
    bool created = false;
    Peer& peer = core.peers[core.peers.find_or_add(host(number), {}, 3, created)];
    setups.place(peer);
    return peer;
  }

  PluginWatch watch;
  CongestionSetups setups{core, watch};
};

CcSetup fixed_at_mbps(double mbps) {
  return {bench_choice(AlgorithmId::fixed, {{"rate_mbps", mbps}}),
          bench_choice(AlgorithmId::dcqcn)};
}

// Arm 1 for clusters 1 and 3.
ArmsByPeer arms_of(const CcSetup& first, const CcSetup& second, std::uint8_t own_cluster) {
  ArmsByPeer arms;
  arms.setups = {first, second};
  arms.arm_of[1] = arms.arm_of[3] = 1;
  arms.own_cluster = own_cluster;
  // In no order.
  for (std::uint8_t cluster : {std::uint8_t{2}, std::uint8_t{0}, std::uint8_t{3}, std::uint8_t{1}})
    arms.places.push_back({host(cluster), cluster});
  return arms;
}

TEST_CASE("setups: what does not fit is refused with its reason", "[transport][setups]") {
  const SetupsBench b;
  const CcSetup good = bench_setup(AlgorithmId::swift);
  CHECK(b.setups.refusal(good).empty());
  CcSetup wrong = good;
  wrong.primary.values.pop_back();
  const std::size_t given = wrong.primary.values.size();
  CHECK(b.setups.refusal(wrong) == "primary: swift has " + std::to_string(given + 1) +
                                       " parameters, given are " + std::to_string(given));
  wrong = good;
  wrong.fallback.values.push_back(1);
  CHECK(b.setups.refusal(wrong).starts_with("fallback: dcqcn has "));
  wrong = good;
  wrong.primary.algorithm = static_cast<AlgorithmId>(250);
  CHECK(b.setups.refusal(wrong) == "primary: no such algorithm");
  wrong = good;
  wrong.fallback = bench_choice(AlgorithmId::cadence);
  CHECK(b.setups.refusal(wrong) == "fallback: must be a reactive algorithm");

  const CcSetup cadence = bench_setup(AlgorithmId::cadence), sird = bench_setup(AlgorithmId::sird);
  CHECK(b.setups.refusal(arms_of(good, cadence, 0)).empty());
  CHECK(b.setups.refusal(arms_of(cadence, cadence, 0)).empty());
  CHECK(b.setups.refusal(arms_of(cadence, sird, 0)).starts_with("cadence and sird cannot share"));
  CHECK(b.setups.refusal(arms_of(good, wrong, 0)) ==
        "arm 1: fallback: must be a reactive algorithm");
  ArmsByPeer far = arms_of(good, good, 0);
  far.places.push_back({host(9), static_cast<std::uint8_t>(telemetry::kMostClusters)});
  const std::string most = std::to_string(telemetry::kMostClusters);
  CHECK(b.setups.refusal(far) == "cluster " + most + " of " + most + " at most");
}

TEST_CASE("setups: values are in force with their generation, arm and epoch",
          "[transport][setups]") {
  SetupsBench b;
  CHECK(b.setups.generation() == 1);
  CHECK(b.setups.own().primary.algorithm == AlgorithmId::fixed);
  b.setups.install(fixed_at_mbps(700), 5, 6);
  CHECK(b.setups.generation() == 2);
  CHECK(b.fixed_bps(0) == 700'000'000);
  CHECK(b.setups.epoch() == 6);
  CHECK(b.setups.number_of(0) == 5);
  CHECK_FALSE(b.core.control_active);
  const auto before = b.setups.install(bench_setup(AlgorithmId::cadence), 1, 7);
  CHECK_FALSE(before.proactive);
  CHECK_FALSE(before.grants);
  CHECK(before.receiving == AlgorithmId::fixed);
  CHECK(b.setups.proactive());
  CHECK(b.setups.grants());
  // Peers that do not speak have the fallback.
  Peer& peer = b.add_peer(1);
  for (const auto& [status, expected] : {std::pair{PeerStatus::unknown, AlgorithmId::dcqcn},
                                         std::pair{PeerStatus::roce, AlgorithmId::dcqcn},
                                         std::pair{PeerStatus::paceline, AlgorithmId::cadence}}) {
    peer.status = status;
    CHECK(b.setups.algorithm_for(peer) == expected);
  }
  const auto cadence = b.setups.install(bench_setup(AlgorithmId::swift), 1, 8);
  CHECK(cadence.proactive);
  CHECK(cadence.governing == AlgorithmId::cadence);
  peer.status = PeerStatus::roce;
  CHECK(b.setups.algorithm_for(peer) == AlgorithmId::swift);
  CHECK(b.setups.generation() == 4);
}

TEST_CASE("setups: two arms at a time, each peer has that of its cluster", "[transport][setups]") {
  SetupsBench b;
  std::vector<std::uint32_t> numbers{0, 1, 2, 3, 7};
  b.add_peer(0);  // these three are there before
  b.add_peer(1);
  b.add_peer(7);
  b.setups.install(arms_of(fixed_at_mbps(100), fixed_at_mbps(200), 3), 9);
  CHECK(b.setups.generation() == 2);
  CHECK(b.setups.own().primary.values == fixed_at_mbps(200).primary.values);
  CHECK(b.fixed_bps(0) == 100'000'000);
  CHECK(b.fixed_bps(1) == 200'000'000);
  REQUIRE(b.core.packets_to != nullptr);
  const std::map<std::uint32_t, std::uint8_t> slots{{0, 0}, {1, 1}, {2, 0}, {3, 1}, {7, 0}};
  for (const std::uint32_t number : numbers) {
    const std::uint32_t index = b.core.peers.find(host(number), 3);
    const Peer& peer = index == kNoIndex ? b.add_peer(number) : b.core.peers[index];
    CAPTURE(number);
    CHECK(peer.setup_slot == slots.at(number));
    CHECK(peer.cluster == (number == 7 ? telemetry::kNoCluster : number));
    CHECK(b.setups.number_of(peer.setup_slot) == slots.at(number));
  }
  // One setup again: for all.
  b.setups.install(fixed_at_mbps(300), 4, 10);
  CHECK(b.fixed_bps(0) == 300'000'000);
  for (const std::uint32_t number : numbers) {
    const Peer& peer = b.core.peers[b.core.peers.find(host(number), 3)];
    CHECK(peer.setup_slot == 0);
    CHECK(peer.cluster == telemetry::kNoCluster);
  }
  CHECK(b.setups.number_of(0) == 4);
  CHECK(b.setups.own().primary.values == fixed_at_mbps(300).primary.values);
}

TEST_CASE("setups: the arm that grants divides the uplink, else the other one that would",
          "[transport][setups]") {
  const CcSetup swift = bench_setup(AlgorithmId::swift);
  const CcSetup cadence = bench_setup(AlgorithmId::cadence);
  struct Case {
    const CcSetup& first;
    const CcSetup& second;
    std::uint8_t own_cluster, governing;
    bool proactive, grants;
  };
  for (const Case& c :
       {Case{swift, cadence, 0, 1, true, false}, Case{swift, cadence, 1, 1, true, true},
        Case{cadence, swift, 0, 0, true, true}, Case{cadence, swift, 1, 0, true, false},
        Case{cadence, cadence, 3, 1, true, true}, Case{swift, swift, 1, 1, false, false}}) {
    SetupsBench b;
    b.setups.install(arms_of(c.first, c.second, c.own_cluster), 0);
    CHECK(b.setups.governing_arm() == c.governing);
    CHECK(b.setups.proactive() == c.proactive);
    CHECK(b.setups.grants() == c.grants);
  }
}

TEST_CASE("arms: a table of clusters finds every address that was put, and no other",
          "[transport][setups]") {
  const auto seed = GENERATE(1U, 2U, 3U);
  CAPTURE(seed);
  Random random(seed);
  std::map<std::uint32_t, std::uint8_t> model;
  for (int i = 0; i < 200; ++i) {
    model[static_cast<std::uint32_t>(random.below(500))] =
        static_cast<std::uint8_t>(random.below(telemetry::kMostClusters));
  }
  std::vector<ArmsByPeer::Place> places;
  for (const auto& [number, cluster] : model) places.push_back({host(number), cluster});
  for (std::size_t i = places.size(); i > 1; --i) std::swap(places[i - 1], places[random.below(i)]);
  ClusterTable table;
  table.set(places);
  for (std::uint32_t number = 0; number < 500; ++number) {
    const auto at = model.find(number);
    REQUIRE(table.find(host(number)) == (at == model.end() ? telemetry::kNoCluster : at->second));
  }
  table.clear();
  CHECK(table.find(host(model.begin()->first)) == telemetry::kNoCluster);
}

TEST_CASE("plug-in watch: what guards find is counted once, a quarantine told once and kept",
          "[transport][setups]") {
  PluginWatch watch;
  telemetry::EngineCounters counters{};
  const auto id = static_cast<AlgorithmId>(cc::kAlgorithms + 1);
  const auto values = [&](AlgorithmId algorithm) {
    cc::ParamBlock block;
    block.id = algorithm;
    if (cc::is_plugin(algorithm)) block.put(cc::plugin::PluginParams{});
    watch.watch(block, {});
    return block;
  };
  values(AlgorithmId::fixed);
  CHECK_FALSE(watch.any());
  CHECK(watch.quarantined(id) == cc::plugin::Offence::none);
  cc::plugin::Guard& guard = *values(id).as<cc::plugin::PluginParams>().guard;
  CHECK(watch.any());
  CHECK_FALSE(watch.has_news());

  guard.count_clamped();
  guard.count_nonsense();
  CHECK(watch.has_news());
  watch.begin_news();
  CHECK_FALSE(watch.has_news());
  CHECK_FALSE(watch.take_news(0, counters));  // another plug-in's
  CHECK(counters.plugin_clamped == 0);
  for (int i = 0; i < 2; ++i) CHECK_FALSE(watch.take_news(1, counters));
  CHECK(counters.plugin_clamped == 1);
  CHECK(counters.plugin_nonsense == 1);

  guard.by_receiver = true;
  guard.quarantine(cc::plugin::Offence::starved);
  CHECK(watch.has_news());
  CHECK(watch.take_news(1, counters));
  CHECK_FALSE(watch.take_news(1, counters));
  CHECK(counters.plugin_quarantines == 1);
  CHECK(counters.plugin_receiver_quarantines == 1);
  // Other values do not wash it clean; other plug-ins have their own record.
  CHECK(values(id).as<cc::plugin::PluginParams>().guard == &guard);
  CHECK(watch.quarantined(id) == cc::plugin::Offence::starved);
  CHECK(watch.quarantined(static_cast<AlgorithmId>(cc::kAlgorithms)) == cc::plugin::Offence::none);
}

TEST_CASE("port backlog: refused packets first, then those in line, each in order",
          "[transport][setups]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U);
  CAPTURE(seed);
  Random random(seed);
  PacketPool pool(600);
  PortBacklog backlog;
  struct Lists {
    std::vector<Packet*> refused, in_line;
  };
  std::map<unsigned, Lists> model;
  for (int step = 0; step < 1500; ++step) {
    const auto c = static_cast<unsigned>(random.below(kTrafficClasses));
    Lists& lists = model[c];
    const std::uint64_t what = random.below(3);
    if (what != 2 && pool.in_use() < 500) {
      Packet* const packet = pool.alloc();
      packet->traffic_class = static_cast<std::uint8_t>(c);
      if (what == 0) {
        backlog.push_refused(c, packet);
        lists.refused.push_back(packet);
      } else {
        backlog.send_in_line(packet);
        lists.in_line.push_back(packet);
      }
    } else {
      std::vector<Packet*> expected = lists.refused;
      expected.insert(expected.end(), lists.in_line.begin(), lists.in_line.end());
      const std::uint64_t room = random.below(expected.size() + 2);
      std::vector<Packet*> out;
      const bool all = backlog.flush(c, [&](Packet* packet) {
        if (out.size() == room) return false;
        out.push_back(packet);
        pool.free(packet);  // it is the callee's now
        return true;
      });
      REQUIRE(all == (room >= expected.size()));
      expected.resize(out.size());
      REQUIRE(out == expected);
      for (std::size_t i = 0; i < out.size(); ++i) {
        auto& from = lists.refused.empty() ? lists.in_line : lists.refused;
        from.erase(from.begin());
      }
    }
    for (unsigned k = 0; k < kTrafficClasses; ++k) {
      const bool empty = model[k].refused.empty() && model[k].in_line.empty();
      REQUIRE(backlog.empty(k) == empty);
      REQUIRE(backlog.waits_in_line(k) == !model[k].in_line.empty());
      if (!empty) REQUIRE((backlog.classes() >> k & 1U) != 0);
    }
    if (lists.refused.empty() && lists.in_line.empty()) {
      REQUIRE(backlog.flush(c, [](Packet*) { return true; }));
      REQUIRE((backlog.classes() >> c & 1U) == 0);
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
