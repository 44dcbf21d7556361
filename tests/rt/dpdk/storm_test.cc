// The storm of broken frames (tests/rt/storm) over DPDK's rings: into mbufs, out of them, and every
// one of them back.
#include <catch2/catch.hpp>

#include "tests/rt/dpdk/ring_pair.h"
#include "tests/rt/support/storm.h"

namespace paceline::test {
namespace {

void ring_storm(const StormConfig& config, std::uint64_t seed) {
  INFO("seed " << seed);
  FrameMutator mutator(seed);
  RingPair pair({.packets = 8192, .slots = 1024, .payload_room = 4096});
  StormReport report;
  CHECK(storm_round(*pair.ports[0], *pair.ports[1], mutator, config, report) == "");
  UNSCOPED_INFO(to_text(report));
  CHECK(report.injected == config.frames);
  CHECK(report.malformed > config.frames / 20);
  CHECK(report.retransmitted == 0);
  if (config.attack) CHECK(report.hurt > 0);
  const DpdkPortCounters& in = pair.ports[0]->counters();
  CHECK(pair.ports[1]->counters().tx_packets == in.rx_packets + in.rx_too_long + in.rx_no_packet);
  CHECK(in.rx_other > 0);
  for (auto& port : pair.ports) {
    CHECK(port->packets().in_use() == 0);
    port.reset();
  }
  for (auto& device : pair.devices) device.reset();
  pair.cable.reset();
  CHECK(pair.memory->outside() == 0);
}

TEST_CASE("storm over net_ring: every broken frame is counted, the good connection unharmed") {
  ring_storm({.frames = 30'000}, 11);
}

TEST_CASE("storm over net_ring: a queue pair is attacked, IPv6") {
  ring_storm({.frames = 15'000, .attack = true, .ipv6 = true}, 12);
}

}  // namespace
}  // namespace paceline::test
