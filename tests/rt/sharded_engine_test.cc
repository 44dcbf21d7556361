// One instance of two engines on two threads, each with a receive queue of the device, talks to one
// peer engine on a third thread. The device brings packets to queues in several ways, the worst of
// which is always wrong; what is in the wrong place is handed over by rings. Every byte is checked.
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>
#include <thread>

#include "dataplane/driver/clock/tsc_clock.h"
#include "dataplane/port/ring_port.h"
#include "dataplane/port/shard_port.h"
#include "dataplane/port/steering.h"
#include "dataplane/transport/shard_link.h"
#include "tests/rt/support/verified_side.h"

namespace paceline::test {
namespace {

constexpr std::uint32_t kShardBits = 1;
constexpr std::uint32_t kShards = 1U << kShardBits;

enum class Queues { by_port, at_home, never_at_home };

// The peer's end of the device with two queues: a cable to each. What crosses from one cable's pool
// to the other's is copied.
class TwoQueues final : public Port {
 public:
  TwoQueues(RingPort& queue0, RingPort& queue1, Queues choice)
      : queues_{&queue0, &queue1}, choice_(choice) {}

  std::size_t rx(std::span<Packet*> burst) override {
    std::size_t n = queues_[0]->rx(burst);
    std::array<Packet*, 32> other;
    const std::size_t room = std::min(other.size(), burst.size() - n);
    const std::size_t more = queues_[1]->rx({other.data(), room});
    for (std::size_t i = 0; i < more; ++i) {
      if (Packet* copy = packets().copy_of(*other[i])) burst[n++] = copy;
      queues_[1]->packets().free(other[i]);
    }
    return n;
  }
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override {
    for (std::size_t i = 0; i < burst.size(); ++i) {
      if (queue_of(*burst[i]) == 0) {
        if (queues_[0]->tx(now, traffic_class, {&burst[i], 1}) == 0) return i;
        continue;
      }
      if (queues_[1]->tx_ready_at(traffic_class) == kNever) return i;
      Packet* copy = queues_[1]->packets().copy_of(*burst[i]);
      if (copy == nullptr) return i;
      if (queues_[1]->tx(now, traffic_class, {&copy, 1}) == 0) {
        queues_[1]->packets().free(copy);
        return i;
      }
      packets().free(burst[i]);
    }
    return burst.size();
  }
  Picos rx_ready_at() const override {
    return earlier(queues_[0]->rx_ready_at(), queues_[1]->rx_ready_at());
  }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return later(queues_[0]->tx_ready_at(traffic_class), queues_[1]->tx_ready_at(traffic_class));
  }
  PacketPool& packets() override { return queues_[0]->packets(); }
  PortInfo info() const override { return queues_[0]->info(); }

 private:
  std::uint32_t queue_of(const Packet& packet) const {
    switch (choice_) {
      case Queues::by_port:
        return device_queue(packet, QueueChoice::udp_source_port, kShards);
      case Queues::at_home:
        return home_shard(packet, kShardBits);
      case Queues::never_at_home:
        break;
    }
    return 1 - home_shard(packet, kShardBits);
  }

  std::array<RingPort*, 2> queues_;
  Queues choice_;
};

// Both conversations of the peer, on its one engine.
class Both final : public WorkerApp {
 public:
  Both(VerifiedSide& first, VerifiedSide& second) : first_(first), second_(second) {}
  bool step(Picos now) override {
    const bool first = first_.step(now);
    return second_.step(now) || first;
  }

 private:
  VerifiedSide& first_;
  VerifiedSide& second_;
};

void talk(cc::AlgorithmId algorithm, Queues choice, std::size_t ring_packets = 256) {
  RingCableConfig cable_config;
  cable_config.link_rate = rate_from_gbps(10);
  RingCable cable0(cable_config);
  RingCable cable1(cable_config);
  ShardExchange exchange(kShardBits, ring_packets);
  transport::ShardLink link(kShardBits, 64);
  ShardPort port0(exchange, 0, cable0.end(0));
  ShardPort port1(exchange, 1, cable1.end(0));
  TwoQueues far_port(cable0.end(1), cable1.end(1), choice);

  const auto peers = transport::PeerPolicy::paceline;
  SideConfig near{.index = 0,
                  .algorithm = algorithm,
                  .mac = wire::MacAddress::local(1),
                  .shard_bits = kShardBits,
                  .shards = &link,
                  .peers = peers};
  const SideConfig far{
      .index = 1, .algorithm = algorithm, .mac = wire::MacAddress::local(2), .peers = peers};
  std::atomic<int> finished{0};
  std::atomic<bool> stop{false};
  {
    VerifiedSide side0(near, port0, finished);
    near.shard = 1;
    VerifiedSide side1(near, port1, finished);
    transport::Engine far_engine(engine_config(far, far_port.info()), far_port);
    VerifiedSide far0(far, far_engine, finished);
    VerifiedSide far1(far, far_engine, finished);
    REQUIRE(side0.connect(far0.facts()));
    REQUIRE(far0.connect(side0.facts()));
    REQUIRE(side1.connect(far1.facts()));
    REQUIRE(far1.connect(side1.facts()));
    Both both(far0, far1);

    const TscClock clock = TscClock::calibrated();
    const auto run = [&](transport::Engine& engine, Port& port, WorkerApp& app) {
      Worker worker;
      worker.add({&engine, &port, &app});
      worker.run(clock, stop);
    };
    std::thread thread0([&] { run(side0.engine(), port0, side0); });
    std::thread thread1([&] { run(side1.engine(), port1, side1); });
    std::thread thread2([&] { run(far_engine, far_port, both); });
    while (finished.load(std::memory_order_acquire) != 4) std::this_thread::yield();
    stop.store(true, std::memory_order_release);
    thread0.join();
    thread1.join();
    thread2.join();

    for (VerifiedSide* side : {&side0, &side1, &far0, &far1}) CHECK(side->verdict() == "");
    CHECK(far_engine.counters().rx_data_bytes == far0.bytes_wanted() + far1.bytes_wanted());
    // Nothing reached an engine that was not its own.
    for (VerifiedSide* side : {&side0, &side1}) {
      CHECK(side->engine().counters().no_queue_pair == 0);
      CHECK(telemetry::malformed_total(side->engine().counters()) == 0);
    }
    const std::uint64_t over = port0.counters().handed_over + port1.counters().handed_over;
    const std::uint64_t received =
        side0.engine().counters().rx_packets + side1.engine().counters().rx_packets;
    if (choice == Queues::at_home) CHECK(over == 0);
    if (choice == Queues::never_at_home) {
      CHECK(over >= received);  // some may still be in the rings, or have found no packet
      CHECK(received > 0);
    }
    if (algorithm == cc::AlgorithmId::cadence) {
      // The allocator of shard 0 grants for data that shard 1 receives, too, and both get grants.
      CHECK(side0.engine().counters().grants_sent > 0);
      CHECK(side1.engine().counters().grants_sent == 0);
      CHECK(side0.engine().counters().grants_received > 0);
      CHECK(side1.engine().counters().grants_received > 0);
    }
  }
  // Engines are gone; every packet is home.
  exchange.drain();
  for (RingCable* cable : {&cable0, &cable1}) {
    cable->drain();
    CHECK(cable->end(0).packets().in_use() == 0);
    CHECK(cable->end(1).packets().in_use() == 0);
  }
}

TEST_CASE("two engines of an instance on two threads: every packet at the wrong one",
          "[rt][threads]") {
  talk(cc::AlgorithmId::fixed, Queues::never_at_home);
}

TEST_CASE("two engines of an instance on two threads: queues by UDP source port",
          "[rt][threads][slow]") {
  talk(cc::AlgorithmId::dcqcn, Queues::by_port);
}

TEST_CASE("two engines of an instance on two threads: flow rules", "[rt][threads][slow]") {
  talk(cc::AlgorithmId::fixed, Queues::at_home);
}

TEST_CASE("two engines of an instance on two threads: one governor and one allocator",
          "[rt][threads]") {
  talk(cc::AlgorithmId::cadence, Queues::never_at_home);
}

}  // namespace
}  // namespace paceline::test
