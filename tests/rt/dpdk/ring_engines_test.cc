// The engine that runs in virtual time, unchanged, over real DPDK devices: two net_ring devices
// joined crosswise, a thread each.
#include <atomic>
#include <catch2/catch.hpp>

#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/port/dpdk/dpdk_port.h"
#include "tests/rt/dpdk/driver_part/stamping.h"
#include "tests/rt/dpdk/environment.h"
#include "tests/rt/support/verified_side.h"
#include "tests/support/dpdk_ring_cable.h"
#include "tests/support/impair.h"

namespace paceline::test {
namespace {

struct Shape {
  std::uint32_t packets = 4096;
  unsigned slots = 512;
  bool one_memory = true;
  bool ipv6 = false;
  std::uint16_t mtu = 4096;
  Impairments impairments{};
  unsigned mbps = 10'000;
  bool stamped = false;  // both ends by a clock of their own
};

// What two devices count: nanoseconds, from different times on.
std::uint64_t device_ticks(unsigned index) {
  return static_cast<std::uint64_t>(raw_monotonic_time().count) - (index == 0 ? 0 : 1ULL << 62);
}

// True when both ends have measured a round trip by when its answer came, where that is stamped.
bool move_both_ways(const Shape& shape) {
  Eal& environment = eal();
  bool all_measured = true;
  const auto memory_of = [&](const char* name) {
    DpdkMemorySettings settings;
    settings.name = name;
    settings.packets = shape.packets;
    settings.payload_room = shape.mtu;
    DpdkMemoryMade made = DpdkMemory::make(settings);
    INFO(made.error);
    REQUIRE(made.memory != nullptr);
    return std::move(made.memory);
  };
  std::unique_ptr<DpdkMemory> memories[2] = {memory_of("first"), nullptr};
  if (!shape.one_memory) memories[1] = memory_of("second");
  {
    DpdkRingCableMade made = DpdkRingCable::make("cable", shape.slots);
    INFO(made.error);
    REQUIRE(made.cable != nullptr);
    std::unique_ptr<DpdkDevice> devices[2];
    std::unique_ptr<Stamping> stamping[2];
    std::unique_ptr<DpdkPort> ports[2];
    for (unsigned i = 0; i < 2; ++i) {
      DpdkMemory* const memory = memories[shape.one_memory ? 0 : i].get();
      DpdkDeviceSettings settings;
      settings.device = made.cable->device(i);
      settings.mtu_bytes = shape.mtu;
      settings.rx_descriptors = settings.tx_descriptors = 64;
      DpdkDeviceOpened opened = DpdkDevice::open(environment, settings, {&memory, 1});
      INFO(opened.error);
      REQUIRE(opened.device != nullptr);
      devices[i] = std::move(opened.device);
    }
    for (unsigned i = 0; i < 2; ++i) {
      DpdkPortSettings port;
      port.link_rate = rate_from_mbps(shape.mbps);
      port.engine_packets = shape.packets / (shape.one_memory ? 2 : 1);
      if (shape.stamped) {
        stamping[i] = std::make_unique<Stamping>(devices[i]->port_id(), devices[1 - i]->port_id(),
                                                 [i] { return device_ticks(i); });
        port.stamps = &stamping[i]->source();
      }
      DpdkPortMade made_port = DpdkPort::make(*devices[i], port);
      INFO(made_port.error);
      REQUIRE(made_port.port != nullptr);
      ports[i] = std::move(made_port.port);
    }
    ImpairedPort bad0(*ports[0], shape.impairments, Random(1, 0));
    ImpairedPort bad1(*ports[1], shape.impairments, Random(1, 1));
    std::atomic<int> finished{0};
    {
      const auto algorithm = cc::AlgorithmId::dcqcn;
      VerifiedSide side0({0, algorithm, wire::MacAddress::local(1), shape.ipv6}, bad0, finished);
      VerifiedSide side1({1, algorithm, wire::MacAddress::local(2), shape.ipv6}, bad1, finished);
      CHECK(side0.expected_peer(wire::MacAddress::local(2)).address.qp_number ==
            side1.facts().address.qp_number);
      REQUIRE(side0.connect(side1.facts()));
      REQUIRE(side1.connect(side0.facts()));
      const Speaker speakers[] = {{&side0, &bad0}, {&side1, &bad1}};
      converse(speakers, finished, [](const std::function<void()>& work) {
        const LcoreRegistration known;
        work();
      });
      CHECK(side0.verdict() == "");
      CHECK(side1.verdict() == "");
      for (VerifiedSide* const side : {&side0, &side1}) {
        const transport::ArrivalStamps& stamps = side->engine().view().arrival_stamps();
        if (!shape.stamped) CHECK(stamps.samples == 0);
        all_measured &= stamps.samples > 0;
        // A round trip may be shorter than what the clocks differ by, now and then.
        CHECK(stamps.refused <= stamps.samples / 10 + 1);
      }
      const bool clean = shape.impairments.corrupt == 0;
      CHECK((telemetry::malformed_total(side0.engine().counters()) == 0) == clean);
    }
    bad0.take_back();
    bad1.take_back();
    for (const auto& port : ports) {
      CHECK(port->packets().in_use() == 0);
      CHECK(port->counters().rx_packets > 0);
      CHECK(port->counters().rx_no_packet == 0);
      // Copied where the memories differ, and only there.
      CHECK(port->counters().rx_moved == (shape.one_memory ? 0 : port->counters().rx_packets));
      CHECK((port->stamps() != nullptr) == shape.stamped);
    }
    for (auto& port : ports) port.reset();
    for (auto& stamps : stamping) stamps.reset();
    for (auto& device : devices) device.reset();
  }
  // Engines, ports, devices and cable are gone: every packet is home.
  for (const auto& memory : memories) {
    if (memory != nullptr) CHECK(memory->outside() == 0);
  }
  return all_measured;
}

TEST_CASE("two engines over net_ring, one memory: nothing is copied on the way", "[rt]") {
  move_both_ways({});
}

TEST_CASE("two engines over net_ring, a memory each, IPv6, MTU 1024", "[rt]") {
  move_both_ways({.one_memory = false, .ipv6 = true, .mtu = 1024});
}

// Real clocks: a packet comes when the other end puts it into the ring, and waits there for a poll.
TEST_CASE("two engines over net_ring measure round trips by the devices' clocks", "[rt]") {
  // It takes a while to know a clock, and on a machine that does something else besides the bytes
  // may be over before.
  bool measured = false;
  for (int attempt = 0; attempt < 20 && !measured; ++attempt) {
    measured = move_both_ways({.mbps = 500, .stamped = true});
  }
  CHECK(measured);
}

TEST_CASE("two engines over net_ring with few packets and short rings", "[rt]") {
  move_both_ways({.packets = 256, .slots = 16});
}

TEST_CASE("two engines over net_ring, a bad cable", "[rt]") {
  move_both_ways(
      {.impairments = {.drop = 0.002, .corrupt = 0.002, .duplicate = 0.005, .reorder = 0.002}});
}

}  // namespace
}  // namespace paceline::test
