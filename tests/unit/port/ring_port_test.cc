#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <stdexcept>
#include <thread>

#include "tests/support/ring_port.h"

namespace paceline {
namespace {

RingCableConfig small() {
  RingCableConfig config;
  config.ring_packets = 8;
  config.pool_packets = 32;
  return config;
}

Packet* make(RingPort& port, std::uint64_t number, std::uint16_t payload) {
  Packet* packet = port.packets().alloc();
  if (packet == nullptr) return nullptr;
  packet->digest = number;
  packet->header_bytes = 54;
  packet->header.fill(static_cast<std::byte>(number));
  packet->payload_bytes = payload;
  packet->payload_kind = payload == 0 ? PayloadKind::none : PayloadKind::owned;
  packet->icrc = static_cast<std::uint32_t>(number * 7);
  for (std::uint16_t i = 0; i < payload; ++i) {
    packet->payload[i] = static_cast<std::byte>(number + i);
  }
  return packet;
}

bool intact(const Packet& packet, std::uint64_t number, std::uint16_t payload) {
  if (packet.digest != number || packet.payload_bytes != payload) return false;
  if (packet.icrc != static_cast<std::uint32_t>(number * 7)) return false;
  for (const std::byte b : packet.header_view()) {
    if (b != static_cast<std::byte>(number)) return false;
  }
  for (std::uint16_t i = 0; i < payload; ++i) {
    if (packet.payload[i] != static_cast<std::byte>(number + i)) return false;
  }
  return true;
}

TEST_CASE("a packet crosses as a copy and the original goes home", "[port]") {
  RingCable cable(small());
  RingPort& a = cable.end(0);
  RingPort& b = cable.end(1);
  CHECK(b.rx_ready_at() == kNever);
  Packet* sent = make(a, 42, 1000);
  REQUIRE(a.tx({5}, kDefaultDataClass, {&sent, 1}) == 1);
  CHECK(b.rx_ready_at() <= Picos{0});
  std::array<Packet*, 4> got{};
  REQUIRE(b.rx(got) == 1);
  CHECK(got[0] != sent);
  CHECK(got[0]->pool_id == b.packets().id());
  CHECK(intact(*got[0], 42, 1000));
  CHECK(got[0]->wire_bytes == 54 + 1000 + 8 + 20);
  CHECK(a.packets().in_use() == 1);
  a.reclaim();
  CHECK(a.packets().in_use() == 0);
  b.packets().free(got[0]);
  CHECK(b.packets().in_use() == 0);
  CHECK(a.info().computes_icrc == false);
  CHECK(a.info().payload_room >= 4096);
}

TEST_CASE("data leaves room for control; what is not taken stays with the caller", "[port]") {
  RingCable cable(small());
  RingPort& a = cable.end(0);
  std::array<Packet*, 12> packets{};
  for (std::size_t i = 0; i < packets.size(); ++i) packets[i] = make(a, i, 0);
  CHECK(a.tx({0}, kDefaultDataClass, packets) == 6);
  CHECK(a.tx_ready_at(kDefaultDataClass) == kNever);
  CHECK(a.tx_ready_at(kControlClass) <= Picos{0});
  CHECK(a.tx({0}, kControlClass, {packets.data() + 6, 6}) == 2);
  CHECK(a.tx_ready_at(kControlClass) == kNever);
  CHECK(a.counters().tx_full == 2);
  for (std::size_t i = 8; i < 12; ++i) a.packets().free(packets[i]);
  cable.drain();
  CHECK(a.packets().in_use() == 0);
}

TEST_CASE("an end without a free packet drops and counts, as a NIC does", "[port]") {
  RingCable cable(small());
  RingPort& a = cable.end(0);
  RingPort& b = cable.end(1);
  std::array<Packet*, 32> hoard{};
  for (auto& packet : hoard) packet = b.packets().alloc();
  Packet* sent = make(a, 1, 10);
  REQUIRE(a.tx({0}, kDefaultDataClass, {&sent, 1}) == 1);
  std::array<Packet*, 4> got{};
  CHECK(b.rx(got) == 0);
  CHECK(b.counters().rx_no_packet == 1);
  a.reclaim();
  CHECK(a.packets().in_use() == 0);
  for (auto& packet : hoard) b.packets().free(packet);
}

TEST_CASE("figures that do not fit together are refused", "[port]") {
  RingCableConfig config = small();
  config.payload_room = 100;
  CHECK_THROWS_AS(RingCable(config), std::invalid_argument);
  config = small();
  config.pool_packets = 16;
  CHECK_THROWS_AS(RingCable(config), std::invalid_argument);
  config = small();
  config.link_rate = {};
  CHECK_THROWS_AS(RingCable(config), std::invalid_argument);
}

TEST_CASE("two threads: everything in order, nothing damaged, all packets home",
          "[port][threads]") {
  constexpr std::uint64_t kCount = 20'000;
  RingCableConfig config;
  config.ring_packets = 64;
  config.pool_packets = 256;
  RingCable cable(config);
  const auto size_of = [](std::uint64_t n) { return static_cast<std::uint16_t>(n * 37 % 257); };
  bool good = true;
  std::thread producer([&] {
    RingPort& port = cable.end(0);
    for (std::uint64_t n = 0; n < kCount;) {
      Packet* packet = make(port, n, size_of(n));
      if (packet == nullptr || port.tx({0}, kDefaultDataClass, {&packet, 1}) == 0) {
        if (packet != nullptr) port.packets().free(packet);
        port.reclaim();
        std::this_thread::yield();
        continue;
      }
      ++n;
    }
  });
  std::thread consumer([&] {
    RingPort& port = cable.end(1);
    std::array<Packet*, 16> got{};
    for (std::uint64_t n = 0; n < kCount;) {
      const std::size_t received = port.rx(got);
      if (received == 0) std::this_thread::yield();
      for (std::size_t i = 0; i < received; ++i, ++n) {
        good = good && intact(*got[i], n, size_of(n));
        port.packets().free(got[i]);
      }
    }
  });
  producer.join();
  consumer.join();
  cable.drain();
  CHECK(good);
  CHECK(cable.end(1).counters().rx_packets == kCount);
  CHECK(cable.end(0).counters().tx_bytes == cable.end(1).counters().rx_bytes);
  CHECK(cable.end(0).packets().in_use() == 0);
  CHECK(cable.end(1).packets().in_use() == 0);
}

}  // namespace
}  // namespace paceline
