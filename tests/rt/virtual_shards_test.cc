// Instances with 1, 2 and 4 engines in virtual time, with every verb and real bytes: four
// conversations, dealt out to the engines at either end differently, over one cable, good or bad.
// Nothing that an application sees depends on the number of engines.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <catch2/catch.hpp>
#include <deque>
#include <memory>

#include "dataplane/driver/host_shards.h"
#include "dataplane/port/ring_port.h"
#include "tests/rt/support/verified_side.h"
#include "tests/support/impair.h"

namespace paceline::test {
namespace {

constexpr unsigned kConversations = 4;

// One end: its engines and what uses them.
struct Instance {
  Instance(const SideConfig& side, Port& port)
      : config(transport::EngineConfig(engine_config(side, port.info()))),
        group(config, port, 0),
        leader(group.config_of(0, config), group.port(0)) {
    group.set_leader(leader);
  }
  VerifiedSide& talk(const SideConfig& side, std::uint32_t shard, std::atomic<int>& finished) {
    return sides.emplace_back(side, group.engine(shard), finished);
  }
  void poll(Picos now) {
    for (VerifiedSide& side : sides) side.step(now);
    for (std::uint32_t s = 0; s < group.shards(); ++s) group.engine_of(s);
    group.poll(now);
  }

  transport::EngineConfig config;
  HostShards group;
  transport::Engine leader;
  std::deque<VerifiedSide> sides;
};

// shards: of the first instance; the second has `far_shards`.
void converse(cc::AlgorithmId algorithm, std::uint32_t shards, std::uint32_t far_shards,
              const Impairments& impairments) {
  INFO("algorithm " << static_cast<int>(algorithm) << ", " << shards << " and " << far_shards
                    << " shards");
  RingCableConfig cable_config;
  cable_config.link_rate = rate_from_gbps(10);
  RingCable cable(cable_config);
  ImpairedPort port0(cable.end(0), impairments, Random(7, 0));
  ImpairedPort port1(cable.end(1), impairments, Random(7, 1));
  SideConfig near{.index = 0,
                  .algorithm = algorithm,
                  .mac = wire::MacAddress::local(1),
                  .shard_bits = static_cast<std::uint32_t>(std::countr_zero(shards)),
                  .peers = transport::PeerPolicy::paceline};
  SideConfig far = near;
  far.index = 1;
  far.mac = wire::MacAddress::local(2);
  far.shard_bits = static_cast<std::uint32_t>(std::countr_zero(far_shards));
  std::atomic<int> finished{0};
  {
    Instance a(near, port0);
    Instance b(far, port1);
    for (unsigned i = 0; i < kConversations; ++i) {
      VerifiedSide& x = a.talk(near, i % shards, finished);
      VerifiedSide& y = b.talk(far, (i + i / 2) % far_shards, finished);
      REQUIRE(x.connect(y.facts()));
      REQUIRE(y.connect(x.facts()));
    }
    Picos now{0};
    std::uint64_t turns = 0;
    while (finished.load() != 2 * kConversations) {
      REQUIRE(++turns < 2'000'000);
      a.poll(now);
      b.poll(now);
      const bool arrived = port0.rx_ready_at() <= now || port1.rx_ready_at() <= now;
      const Picos next = earlier(a.group.next_deadline(), b.group.next_deadline());
      // A packet takes a nanosecond, and nothing is forgotten.
      now = arrived || next == kNever ? now + picos_from_nanos(1)
                                      : later(next, now + picos_from_nanos(1));
    }
    for (Instance* instance : {&a, &b}) {
      std::uint64_t wanted = 0;
      for (VerifiedSide& side : instance->sides) {
        CHECK(side.verdict() == "");
        wanted += side.bytes_wanted();
      }
      CHECK(instance->group.counters().rx_data_bytes == wanted);
      if (impairments.corrupt == 0) CHECK(instance->group.counters().no_queue_pair == 0);
    }
  }
  port0.take_back();
  port1.take_back();
  cable.drain();
  CHECK(cable.end(0).packets().in_use() == 0);
  CHECK(cable.end(1).packets().in_use() == 0);
}

TEST_CASE("every verb between instances of 1, 2 and 4 engines", "[rt][slow]") {
  for (const auto algorithm : {cc::AlgorithmId::fixed, cc::AlgorithmId::dcqcn,
                               cc::AlgorithmId::dctcp, cc::AlgorithmId::cadence}) {
    for (const std::uint32_t shards : {2U, 4U}) converse(algorithm, shards, shards, {});
  }
}

// READ responses both ways behind windows that are full: what each acknowledges is behind them.
TEST_CASE("every verb under an algorithm with a window", "[rt]") {
  converse(cc::AlgorithmId::dctcp, 1, 1, {});
  converse(cc::AlgorithmId::swift, 1, 2, {});
}

TEST_CASE("every verb between instances of different numbers of engines", "[rt]") {
  converse(cc::AlgorithmId::cadence, 4, 1, {});
  converse(cc::AlgorithmId::cadence, 1, 4, {});
}

TEST_CASE("every verb between instances of several engines, over a bad cable", "[rt]") {
  converse(cc::AlgorithmId::dcqcn, 4, 2,
           {.drop = 0.002, .corrupt = 0.002, .duplicate = 0.005, .reorder = 0.002});
}

}  // namespace
}  // namespace paceline::test
