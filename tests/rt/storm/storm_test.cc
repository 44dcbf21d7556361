// Thousands of broken frames beside a good connection, over a cable whose frames are exact heap
// copies, so that the address sanitizer sees every read beyond the end.
// tests/rt/storm/main/frame_storm.cc sends millions of them; tests/rt/dpdk does the same over a
// device.
#include <catch2/catch.hpp>

#include "tests/rt/support/heap_cable.h"
#include "tests/rt/support/storm.h"

namespace paceline::test {
namespace {

void heap_storm(const StormConfig& config, std::uint64_t seed) {
  INFO("seed " << seed);
  FrameMutator mutator(seed);
  CHECK(mutator.seeds() > 1000);
  HeapPort victim(4096, 8192, 0);
  HeapPort peer(4096, 8192, 1);
  victim.join(peer);
  peer.join(victim);
  StormReport report;
  CHECK(storm_round(victim, peer, mutator, config, report) == "");
  UNSCOPED_INFO(to_text(report));
  CHECK(report.injected == config.frames);
  // It got everywhere.
  CHECK(report.refused_by_host > config.frames / 20);
  CHECK(report.answered_by_host > 0);
  CHECK(report.malformed > config.frames / 20);
  CHECK(report.no_queue_pair > config.frames / 100);
  CHECK(report.control > 0);
  CHECK(report.retransmitted == 0);
  if (config.attack) {
    CHECK(report.accepted > 0);
    CHECK(report.hurt > 0);
  }
  // Every frame sent was received or counted, every packet is home.
  CHECK(peer.counters().tx_packets ==
        victim.counters().rx_packets + victim.counters().rx_too_long + victim.waiting());
  CHECK(victim.waiting() == 0);
  CHECK(victim.packets().in_use() == 0);
  CHECK(peer.packets().in_use() == 0);
}

TEST_CASE("storm: every broken frame is counted, the good connection unharmed", "[rt]") {
  heap_storm({.frames = 30'000}, 1);
}

TEST_CASE("storm: a queue pair is attacked, its neighbour unharmed", "[rt]") {
  heap_storm({.frames = 30'000, .attack = true}, 2);
}

TEST_CASE("storm: the same over IPv6", "[rt]") {
  heap_storm({.frames = 15'000, .attack = true, .ipv6 = true}, 3);
}

}  // namespace
}  // namespace paceline::test
