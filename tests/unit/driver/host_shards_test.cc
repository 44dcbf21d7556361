// Turns on the wire among the engines of one host, seen from outside: who finishes when.
#include "dataplane/driver/host_shards.h"

#include <catch2/catch.hpp>

#include "dataplane/port/ring_port.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline {
namespace {

TEST_CASE("a closed port sends nothing", "[driver]") {
  RingCable cable;
  ShardExchange exchange(0, 64);
  GroupPort port(exchange, 0, cable.end(0));
  Packet* packet = port.packets().alloc();
  packet->header_bytes = 54;
  packet->payload_bytes = 0;
  packet->payload_kind = PayloadKind::none;
  port.close(true);
  CHECK(port.tx_ready_at(kDefaultDataClass) == kNever);
  CHECK(port.tx({0}, kDefaultDataClass, {&packet, 1}) == 0);
  port.close(false);
  CHECK(port.tx_ready_at(kDefaultDataClass) == Picos{0});
  CHECK(port.tx({0}, kDefaultDataClass, {&packet, 1}) == 1);
}

// Host 0 sends as much to each of five others, at line rate; its connections are on shards 0, 1, 2,
// 3 and 0 again. In turns by shard those of shard 0 would end a quarter later than the others.
TEST_CASE("connections share the wire whatever engines they are on", "[driver]") {
  constexpr std::int64_t kPacketPs = std::int64_t{4182} * 80;  // of 4096 bytes, at 100 Gb/s
  config::Scenario scenario = quiet_star(6);
  scenario.transport.shards = 4;
  MessagePlan plan;
  for (std::uint32_t to = 1; to <= 5; ++to) {
    plan.messages.push_back({.src = 0, .dst = to, .bytes = 100 * 4096});
  }
  VirtualWorld world(scenario, std::move(plan), checked());
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.shards() == 4);
  for (std::uint32_t s = 0; s < 4; ++s) {
    CHECK(world.engine(0, s).counters().tx_data_packets == (s == 0 ? 200 : 100));
  }
  Picos first = kNever;
  Picos last{0};
  for (const MessageRecord& record : world.records()) {
    first = earlier(first, record.completed);
    last = later(last, record.completed);
  }
  CHECK((last - first).count <= 6 * kPacketPs);
}

TEST_CASE("shards tell what they handed over, and one engine hands over nothing", "[driver]") {
  config::Scenario scenario = quiet_star(3);
  const auto plan =
      plan_of({{.src = 0, .dst = 1, .bytes = 40'960}, {.src = 2, .dst = 1, .bytes = 40'960}});
  VirtualWorld one(scenario, plan, checked());
  REQUIRE(one.run() == RunEnd::completed);
  CHECK(one.handed_over(1, 0).handed_over == 0);
  // Host 1's connections are on shards 1 and 0; what comes in is looked at by shard 0.
  scenario.transport.shards = 2;
  VirtualWorld two(scenario, plan, checked());
  REQUIRE(two.run() == RunEnd::completed);
  CHECK(two.handed_over(1, 0).handed_over == 10);
  CHECK(two.handed_over(1, 1).taken_over == 10);
  CHECK(two.handed_over(1, 1).handed_over == 0);
  CHECK(two.counters(1).rx_data_bytes == 81'920);
  CHECK(two.engine(1, 0).counters().rx_data_bytes == 40'960);
}

}  // namespace
}  // namespace paceline
