// When packets came, by the clock of a device that stamps them.
#include <rte_ethdev.h>

#include <catch2/catch.hpp>
#include <string>

#include "tests/rt/dpdk/driver_part/stamping.h"
#include "tests/rt/dpdk/environment.h"
#include "tests/rt/dpdk/ring_pair.h"

namespace paceline::test {
namespace {

// One time for both clocks: the device counts nanoseconds from somewhere.
struct StampWorld {
  Picos now = picos_from_micros(5'000);
  std::uint64_t ticks() const { return static_cast<std::uint64_t>(now.count / 1000) + kFirst; }
  PollClock poll_clock() const {
    return {[](const void* of) { return static_cast<const StampWorld*>(of)->now; }, this};
  }
  static constexpr std::uint64_t kFirst = ~std::uint64_t{0} - 20'000'000;  // goes round soon
};

// The receiving end of a pair stamps.
struct StampedPair {
  StampedPair() {
    pair.ports[1].reset();
    DpdkPortSettings settings;
    settings.link_rate = rate_from_gbps(100);
    settings.engine_packets = 512;
    settings.pool_id = 1;
    settings.stamps = &stamping.source();
    DpdkPortMade made = DpdkPort::make(*pair.devices[1], settings);
    if (made.port == nullptr) throw std::runtime_error(made.error);
    pair.ports[1] = std::move(made.port);
  }
  ~StampedPair() { pair.ports[1].reset(); }

  DpdkPort& port() { return *pair.ports[1]; }
  // Idle for so long, with a poll each millisecond.
  void idle(unsigned ms) {
    for (unsigned i = 0; i < ms; ++i) {
      world.now += picos_from_micros(1'000);
      REQUIRE(RingPair::receive(port()) == nullptr);
    }
  }
  // What a packet that came now, with that stamp, says when it is found `late` after.
  Picos receive(std::uint64_t stamp, Picos late) {
    Packet* sent = pair.make(*pair.ports[0], 100);
    stamping.stamp = [stamp] { return stamp; };
    REQUIRE(pair.ports[0]->tx(world.now, 3, {&sent, 1}) == 1);
    world.now += late;
    Packet* const packet = RingPair::receive(port());
    REQUIRE(packet != nullptr);
    const Picos said = packet->time;
    port().packets().free(packet);
    return said;
  }

  StampWorld world;
  RingPair pair;
  Stamping stamping{pair.devices[1]->port_id(), pair.devices[0]->port_id(),
                    [this] { return world.ticks(); }};
};

TEST_CASE("dpdk port: packets say when they came, by the device's clock") {
  StampedPair stamped;
  StampWorld& world = stamped.world;
  CHECK(stamped.port().info().stamps_arrivals);
  constexpr Picos kLate = picos_from_micros(30);
  // Nobody has said what the engine goes by; then too little is known of the device's clock.
  CHECK(stamped.receive(world.ticks(), kLate) == Picos{0});
  stamped.port().use_clock(world.poll_clock());
  CHECK(stamped.receive(world.ticks(), kLate) == Picos{0});
  stamped.idle(10);
  const DpdkStamps& stamps = *stamped.port().stamps();
  REQUIRE(stamps.clock().ready());
  CHECK(stamps.clock().frequency() == Approx(1e9));
  for (unsigned i = 0; i < 100; ++i) {
    const Picos came = world.now;
    const Picos said = stamped.receive(world.ticks(), kLate);
    // Both clocks are exact, but for the nanosecond of a tick.
    CHECK(said <= came + picos_from_nanos(1));
    CHECK(said >= came - picos_from_nanos(1));
    stamped.idle(1);
  }
  CHECK(stamps.clock().counters().stamps == 100);
  CHECK(stamps.clock().counters().jumps == 0);
  CHECK(stamps.clock().counters().not_ready == 1);

  // What cannot be, and what has no stamp, has no time.
  CHECK(stamped.receive(world.ticks() + 100'000, kLate) == Picos{0});
  CHECK(stamps.clock().counters().too_late == 1);
  CHECK(stamped.receive(world.ticks() - 5'000'000, kLate) == Picos{0});
  CHECK(stamps.clock().counters().too_early == 1);
  stamped.stamping.silent = true;
  CHECK(stamped.receive(world.ticks(), kLate) == Picos{0});
  CHECK(stamps.unstamped() == 1);
  stamped.stamping.silent = false;

  // Without a clock to say it in nothing is said.
  stamped.port().use_clock({});
  CHECK(stamped.receive(world.ticks(), kLate) == Picos{0});
}

TEST_CASE("dpdk port: on a device that does not stamp packets say nothing") {
  RingPair pair;
  CHECK(!pair.ports[1]->info().stamps_arrivals);
  CHECK(pair.ports[1]->stamps() == nullptr);
  // Somebody else's stamps are left alone.
  StampWorld world;
  const Stamping stamping(pair.devices[1]->port_id(), pair.devices[0]->port_id(),
                          [&] { return world.ticks(); });
  pair.ports[1]->use_clock(world.poll_clock());
  Packet* sent = pair.make(*pair.ports[0], 100);
  REQUIRE(pair.ports[0]->tx({1}, 3, {&sent, 1}) == 1);
  Packet* const packet = RingPair::receive(*pair.ports[1]);
  REQUIRE(packet != nullptr);
  CHECK(packet->time == Picos{0});
  pair.ports[1]->packets().free(packet);
  const DpdkCapabilities& c = pair.devices[1]->capabilities();
  CHECK(!c.arrival_times);
  CHECK(c.stamp_refusal == "the device offers no receive timestamps");
}

TEST_CASE("dpdk device: a clock that cannot be read is no use, and says why") {
  RingPair pair;
  std::string refusal;
  CHECK(!find_stamps(pair.devices[0]->port_id(), refusal));
  CHECK(refusal == "the clock of its timestamps cannot be read (Operation not supported)");
}

}  // namespace
}  // namespace paceline::test
