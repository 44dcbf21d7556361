// The emulated switch between engines that know nothing of it: real frames through rings, every
// byte checked. One thread and a clock of the test's own, so that a run is the same every time.
#include "dataplane/driver/ports/fabric_bridge.h"

#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "tests/rt/support/verified_side.h"
#include "tests/support/ring_port.h"

namespace paceline::test {
namespace {

// A star of `hosts` at 10 Gb/s and 5 us.
fabric::FabricSpec star(std::uint32_t hosts) {
  fabric::FabricSpec spec;
  spec.hosts = hosts;
  spec.switches = 1;
  for (std::uint32_t h = 0; h < hosts; ++h) {
    spec.links.push_back({h, hosts, rate_from_gbps(10), picos_from_micros(5)});
  }
  spec.buffer_bytes = 4'000'000;
  return spec;
}

RingCableConfig slow_cable() {
  RingCableConfig config;
  config.link_rate = rate_from_gbps(10);
  return config;
}

struct BridgeRun {
  fabric::NetworkStats stats;
  telemetry::EngineCounters counters{};
  std::vector<BridgeCounters> ports;
};

// Two engines through hosts 0 and 1 of the fabric, to the end of their conversation.
BridgeRun converse(const fabric::FabricSpec& spec, cc::AlgorithmId algorithm) {
  RingCable first(slow_cable());
  RingCable second(slow_cable());
  const BridgePort ports[] = {{0, &first.end(1)}, {1, &second.end(1)}};
  std::atomic<int> finished{0};
  BridgeRun out;
  {
    FabricBridge bridge(spec, ports);
    VerifiedSide side0({0, algorithm, wire::MacAddress::local(1)}, first.end(0), finished);
    VerifiedSide side1({1, algorithm, wire::MacAddress::local(2)}, second.end(0), finished);
    REQUIRE(side0.connect(side1.facts()));
    REQUIRE(side1.connect(side0.facts()));
    Random steps(spec.seed, 1);
    Picos now{0};
    while (finished.load() != 2 && now < picos_from_micros(60'000'000)) {
      // Turns as a thread has them: some 300 ns, now and then a stop.
      now += Picos{100'000 + static_cast<std::int64_t>(steps.below(400'000))};
      if (steps.below(20'000) == 0) now += picos_from_micros(300);
      for (VerifiedSide* side : {&side0, &side1}) {
        side->step(now);
        side->engine().poll(now);
      }
      bridge.turn(now);
    }
    CHECK(finished.load() == 2);
    CHECK(side0.verdict() == "");
    CHECK(side1.verdict() == "");
    // Frames still in flight arrive.
    for (int i = 0; i < 10'000; ++i) {
      now += picos_from_micros(1);
      bridge.turn(now);
      side0.engine().poll(now);
      side1.engine().poll(now);
    }
    bridge.network().finish(now);
    CHECK(bridge.network().check_conservation() == "");
    out.stats = bridge.network().stats();
    out.counters = side0.engine().counters();
    out.counters += side1.engine().counters();
    for (std::size_t p = 0; p < bridge.ports(); ++p) {
      const BridgeCounters& c = bridge.counters(p);
      out.ports.push_back(c);
      CHECK(c.rx_too_long + c.rx_nowhere + c.tx_no_packet + c.tx_bad_frame == 0);
    }
    CHECK(bridge.waiting() == 0);
  }
  first.drain();
  second.drain();
  for (RingCable* cable : {&first, &second}) {
    CHECK(cable->end(0).packets().in_use() == 0);
    CHECK(cable->end(1).packets().in_use() == 0);
  }
  return out;
}

TEST_CASE("fabric bridge: a good fabric carries every byte", "[rt]") {
  const BridgeRun run = converse(star(3), cc::AlgorithmId::fixed);
  CHECK(run.stats.total_drops() == 0);
  CHECK(run.stats.delivered_packets == run.stats.injected_packets);
  CHECK(telemetry::malformed_total(run.counters) == 0);
  for (const BridgeCounters& port : run.ports) {
    CHECK(port.rx_flooded <= 64);  // until the other end has been heard
    CHECK(port.tx_packets > 1000);
  }
}

TEST_CASE("fabric bridge: losses, late packets, copies and wrong bits befall real frames", "[rt]") {
  fabric::FabricSpec spec = star(2);
  for (fabric::LinkSpec& link : spec.links) {
    link.loss = 0.001;
    link.error_rate = 0.001;
    link.duplicate = 0.003;
    link.reorder = 0.001;
  }
  const BridgeRun run = converse(spec, cc::AlgorithmId::fixed);
  using fabric::DropReason;
  CHECK(run.stats.drops[static_cast<std::size_t>(DropReason::link_loss)] > 0);
  CHECK(run.stats.duplicated_packets > 0);
  CHECK(run.stats.reordered_packets > 0);
  CHECK(run.stats.corrupted_packets > 0);
  // Each damaged packet that arrives is noticed, by its ICRC and by nothing else.
  const std::uint64_t damaged = run.ports[0].tx_damaged + run.ports[1].tx_damaged;
  CHECK(damaged > 0);
  CHECK(telemetry::malformed_total(run.counters) == damaged);
}

TEST_CASE("fabric bridge: marks are in the real headers, and checksums still right", "[rt]") {
  fabric::FabricSpec spec = star(2);
  spec.ecn.kmin_bytes = 0;
  spec.ecn.kmax_bytes = 20'000;
  spec.links[1].rate = rate_from_gbps(2);  // the queue is in front of host 1
  const BridgeRun run = converse(spec, cc::AlgorithmId::dcqcn);
  CHECK(run.stats.marked_packets > 0);
  CHECK(run.counters.cnps_received > 0);
  CHECK(telemetry::malformed_total(run.counters) == 0);
}

TEST_CASE("fabric bridge: links fail, return and change while frames are under way", "[rt]") {
  fabric::FabricSpec spec = star(2);
  using fabric::LinkAction;
  const auto at = [&spec](std::int64_t us, LinkAction action, fabric::LinkEvent event = {}) {
    event.at = picos_from_micros(us);
    event.action = action;
    spec.events.push_back(event);
  };
  at(500, LinkAction::rate, {.link = 1, .rate = rate_from_gbps(1)});
  at(1000, LinkAction::down);
  at(1400, LinkAction::up);
  at(2000, LinkAction::delay, {.link = 0, .delay = picos_from_micros(40)});
  at(3000, LinkAction::loss, {.link = 0, .probability = 0.01});
  const BridgeRun run = converse(spec, cc::AlgorithmId::fixed);
  CHECK(run.stats.link_failures == 1);
  CHECK(run.stats.total_drops() > 0);
}

// --- frames made by hand ---

struct BareHosts {
  explicit BareHosts(std::uint32_t count, fabric::FabricSpec spec) {
    std::vector<BridgePort> ports;
    for (std::uint32_t h = 0; h < count; ++h) {
      cables.push_back(std::make_unique<RingCable>(slow_cable()));
      ports.push_back({h, &cables.back()->end(1)});
    }
    bridge = std::make_unique<FabricBridge>(std::move(spec), ports);
  }
  ~BareHosts() {
    bridge.reset();
    for (auto& cable : cables) cable->drain();
  }
  // A frame that is not IP, `size` bytes, from the MAC address of host `from`.
  void send(std::uint32_t from, wire::MacAddress to, std::size_t size) {
    PacketPool& pool = cables[from]->end(0).packets();
    Packet* packet = pool.alloc();
    const wire::MacAddress source = wire::MacAddress::local(from + 1);
    std::memcpy(packet->header.data(), to.bytes.data(), 6);
    std::memcpy(packet->header.data() + 6, source.bytes.data(), 6);
    packet->header[12] = std::byte{0x88};
    packet->header[13] = std::byte{0xB5};  // for local experiments (IEEE 802, 9.2.4)
    packet->header_bytes = static_cast<std::uint16_t>(std::min<std::size_t>(size, 128));
    for (std::size_t i = 14; i < packet->header_bytes; ++i) packet->header[i] = std::byte(i);
    packet->payload_bytes = static_cast<std::uint16_t>(size - packet->header_bytes);
    packet->payload_kind = packet->payload_bytes == 0 ? PayloadKind::none : PayloadKind::owned;
    std::memset(packet->payload, 0x5A, packet->payload_bytes);
    packet->bth_offset = 0;
    REQUIRE(cables[from]->end(0).tx(now, 0, {&packet, 1}) == 1);
  }
  // Sizes of what a host has received, after `us`.
  std::vector<std::size_t> receive(std::uint32_t host) {
    std::vector<std::size_t> sizes;
    RingPort& port = cables[host]->end(0);
    std::array<Packet*, 64> burst;
    for (std::size_t n = port.rx(burst); n != 0; n = port.rx(burst)) {
      for (std::size_t i = 0; i < n; ++i) {
        sizes.push_back(std::size_t{burst[i]->header_bytes} + burst[i]->payload_bytes);
        port.packets().free(burst[i]);
      }
    }
    return sizes;
  }
  void pass(std::int64_t us) {
    for (std::int64_t i = 0; i < us; ++i) {
      now += picos_from_micros(1);
      bridge->turn(now);
    }
  }

  std::vector<std::unique_ptr<RingCable>> cables;
  std::unique_ptr<FabricBridge> bridge;
  Picos now{0};
};

using Sizes = std::vector<std::size_t>;

wire::MacAddress everybody() {
  wire::MacAddress mac;
  mac.bytes.fill(std::byte{0xFF});
  return mac;
}

TEST_CASE(
    "fabric bridge: frames to all and to strangers reach all others, learned ones only theirs",
    "[rt]") {
  BareHosts hosts(3, star(4));
  hosts.send(0, everybody(), 60);
  hosts.send(0, wire::MacAddress::local(3), 61);
  hosts.pass(100);
  CHECK(hosts.receive(0).empty());
  CHECK(hosts.receive(1) == Sizes{60, 61});
  CHECK(hosts.receive(2) == Sizes{60, 61});
  CHECK(hosts.bridge->counters(0).rx_flooded == 2);
  hosts.send(2, wire::MacAddress::local(1), 900);  // host 0 is known by now
  hosts.pass(100);
  hosts.send(0, wire::MacAddress::local(3), 62);  // and host 2
  hosts.send(0, wire::MacAddress::local(1), 63);  // to itself
  hosts.pass(100);
  CHECK(hosts.receive(0) == Sizes{900});
  CHECK(hosts.receive(1).empty());
  CHECK(hosts.receive(2) == Sizes{62});
  CHECK(hosts.bridge->counters(0).rx_nowhere == 1);
}

TEST_CASE("fabric bridge: a link carries at its rate, whoever sends how fast", "[rt]") {
  fabric::FabricSpec spec = star(2);
  spec.links[0].rate = rate_from_mbps(100);
  BareHosts hosts(2, spec);
  hosts.send(0, wire::MacAddress::local(2), 100);
  hosts.pass(200);
  REQUIRE(hosts.receive(1).size() == 1);
  const std::uint64_t before = hosts.bridge->network().stats().delivered_bytes;
  for (int i = 0; i < 100; ++i) hosts.send(0, wire::MacAddress::local(2), 1226);
  hosts.pass(5'000);
  // 1226 bytes, check sequence, preamble and gap: 1250 bytes, 100 us each.
  const std::uint64_t bytes = hosts.bridge->network().stats().delivered_bytes - before;
  CHECK(bytes >= 48 * 1250);
  CHECK(bytes <= 50 * 1250);
  hosts.pass(6'000);
  CHECK(hosts.receive(1).size() == 100);
}

TEST_CASE("fabric bridge: a frame with a wrong bit that has no ICRC is dropped", "[rt]") {
  fabric::FabricSpec spec = star(2);
  spec.links[0].error_rate = 1;
  BareHosts hosts(2, spec);
  hosts.send(0, everybody(), 200);
  hosts.pass(100);
  CHECK(hosts.receive(1).empty());
  CHECK(hosts.bridge->counters(1).tx_bad_frame == 1);
}

TEST_CASE("fabric bridge: hosts that there are not, and two ports of one", "[rt]") {
  RingCable cable;
  const BridgePort stranger[] = {{4, &cable.end(0)}};
  CHECK_THROWS_WITH(FabricBridge(star(4), stranger), Catch::Contains("hosts are 0 to 3"));
  const BridgePort twice[] = {{1, &cable.end(0)}, {1, &cable.end(1)}};
  CHECK_THROWS_WITH(FabricBridge(star(4), twice), Catch::Contains("host 1 has two ports"));
}

}  // namespace
}  // namespace paceline::test
