#include "dataplane/port/shard_port.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <deque>
#include <set>
#include <span>
#include <stdexcept>
#include <vector>

#include "dataplane/port/steering.h"
#include "dataplane/wire/build.h"
#include "dataplane/wire/control.h"

namespace paceline {
namespace {

constexpr std::size_t kEthernetIpUdp = 14 + 20 + 8;

// Nothing but what steering looks at.
void address(Packet& packet, wire::Opcode opcode, std::uint32_t queue_pair,
             std::uint16_t source_port = 0xC000) {
  packet.header.fill(std::byte{0});
  packet.bth_offset = kEthernetIpUdp;
  packet.header_bytes = kEthernetIpUdp + wire::kBthBytes;
  packet.payload_bytes = 0;
  packet.payload_kind = PayloadKind::none;
  std::byte* const bth = packet.header.data() + packet.bth_offset;
  wire::store_be16(bth - 8, source_port);
  wire::store_u8(bth, static_cast<std::uint8_t>(opcode));
  wire::store_be32(bth + 4, queue_pair);
}

template <class Message>
void control(Packet& packet, const Message& message) {
  wire::FlowAddressing flow;
  flow.source = wire::IpAddress::v4(1);
  flow.destination = wire::IpAddress::v4(2);
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  packet.header_bytes = static_cast<std::uint16_t>(
      wire::build_control(header, wire::HeaderBuffer{packet.header}, Psn(1), message));
  packet.bth_offset = static_cast<std::uint16_t>(header.bth_offset());
}

// A device that has what it was given, and takes everything.
class Device final : public Port {
 public:
  explicit Device(PacketPool& pool) : pool_(pool) {}
  void arrive(std::uint32_t queue_pair, std::uint64_t number) {
    Packet* packet = pool_.alloc();
    REQUIRE(packet != nullptr);
    address(*packet, wire::Opcode::rc_send_only, queue_pair);
    packet->digest = number;
    waiting_.push_back(packet);
  }
  // The latest has its payload elsewhere.
  void lend_last(std::span<const std::byte> bytes) {
    Packet& packet = *waiting_.back();
    packet.payload_bytes = static_cast<std::uint16_t>(bytes.size());
    pool_.lend(packet, bytes.data());
  }
  std::size_t rx(std::span<Packet*> burst) override {
    std::size_t n = 0;
    for (; n < burst.size() && !waiting_.empty(); ++n) {
      burst[n] = waiting_.front();
      waiting_.pop_front();
    }
    return n;
  }
  std::size_t tx(Picos, std::uint8_t, std::span<Packet* const> burst) override {
    for (Packet* packet : burst) pool_.free(packet);
    return burst.size();
  }
  Picos rx_ready_at() const override { return waiting_.empty() ? kNever : Picos{0}; }
  Picos tx_ready_at(std::uint8_t) const override { return Picos{0}; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override { return {}; }

 private:
  PacketPool& pool_;
  std::deque<Packet*> waiting_;
};

std::vector<std::uint64_t> numbers_of(Port& port, std::size_t most = 64) {
  std::vector<Packet*> burst(most);
  const std::size_t n = port.rx(burst);
  std::vector<std::uint64_t> numbers;
  for (std::size_t i = 0; i < n; ++i) {
    numbers.push_back(burst[i]->digest);
    port.packets().free(burst[i]);
  }
  return numbers;
}

using Numbers = std::vector<std::uint64_t>;

TEST_CASE("a packet's home is in the number of its queue pair or channel", "[port]") {
  Packet packet;
  for (std::uint32_t number = 0x40; number < 0x50; ++number) {
    address(packet, wire::Opcode::rc_send_only, number);
    CHECK(home_shard(packet, 0) == 0);
    CHECK(home_shard(packet, 1) == number % 2);
    CHECK(home_shard(packet, 2) == number % 4);
    // What is beside the number in its word does not count.
    packet.header[packet.bth_offset + 4] = std::byte{0xFF};
    CHECK(home_shard(packet, 3) == number % 8);
    address(packet, wire::Opcode::xack, number);
    CHECK(home_shard(packet, 2) == number % 4);
  }
  GrantMessage grant;
  PathMessage path;
  for (std::uint16_t channel = 0; channel < 16; ++channel) {
    grant.channel = path.channel = channel;
    control(packet, grant);
    CHECK(home_shard(packet, 2) == channel % 4U);
    control(packet, path);
    CHECK(home_shard(packet, 2) == channel % 4U);
  }
  RequestMessage request;
  request.channel = 3;
  control(packet, request);
  CHECK(home_shard(packet, 2) == 0);
  control(packet, HelloMessage{});
  CHECK(home_shard(packet, 2) == 0);
}

TEST_CASE("what is no RoCEv2, or is cut off, is shard 0's", "[port]") {
  Packet packet;
  address(packet, wire::Opcode::rc_send_only, 0x43);
  packet.bth_offset = 0;
  CHECK(home_shard(packet, 2) == 0);
  address(packet, wire::Opcode::rc_send_only, 0x43);
  packet.header_bytes -= 1;
  CHECK(home_shard(packet, 2) == 0);
  GrantMessage grant;
  grant.channel = 3;
  control(packet, grant);
  packet.header_bytes = static_cast<std::uint16_t>(packet.bth_offset + wire::kBthBytes + 5);
  CHECK(home_shard(packet, 2) == 0);
}

TEST_CASE("devices choose queues", "[port]") {
  Packet packet;
  std::set<std::uint32_t> used;
  for (std::uint16_t port = 0xC000; port < 0xC040; ++port) {
    address(packet, wire::Opcode::rc_send_only, 0x42, port);
    CHECK(device_queue(packet, QueueChoice::one_queue, 4) == 0);
    CHECK(device_queue(packet, QueueChoice::dest_queue_pair, 4) == 2);
    const std::uint32_t queue = device_queue(packet, QueueChoice::udp_source_port, 4);
    CHECK(queue < 4);
    used.insert(queue);
    address(packet, wire::Opcode::rc_send_only, 0x51, port);  // of the flow, not of the number
    CHECK(device_queue(packet, QueueChoice::udp_source_port, 4) == queue);
  }
  CHECK(used.size() == 4);
}

TEST_CASE("shards with pools of their own get copies, and every packet goes home", "[port]") {
  PacketPool pool0(256);
  PacketPool pool1(256, 0, false, 1);
  Device device0(pool0);
  Device device1(pool1);
  ShardExchange exchange(1, 64);
  ShardPort port0(exchange, 0, device0);
  ShardPort port1(exchange, 1, device1);
  CHECK(port1.rx_ready_at() == kNever);
  for (std::uint64_t i = 0; i < 6; ++i) device0.arrive(static_cast<std::uint32_t>(0x40 + i), i);
  CHECK(numbers_of(port0) == Numbers{0, 2, 4});
  CHECK(port0.counters().handed_over == 3);
  CHECK(port1.rx_ready_at() == Picos{0});
  device1.arrive(0x41, 7);
  CHECK(numbers_of(port1) == Numbers{1, 3, 5, 7});  // in order, what was handed over first
  CHECK(port1.counters().taken_over == 3);
  CHECK(pool1.in_use() == 0);
  CHECK(pool0.in_use() == 3);  // on their way home
  CHECK(numbers_of(port0).empty());
  CHECK(pool0.in_use() == 0);
}

TEST_CASE("shards with one pool pass the packet itself", "[port]") {
  PacketPool pool(256);
  Device device(pool);
  ShardExchange exchange(2, 64);
  std::deque<ShardPort> ports;
  for (std::uint32_t s = 0; s < 4; ++s) ports.emplace_back(exchange, s, device);
  for (std::uint64_t i = 0; i < 8; ++i) device.arrive(static_cast<std::uint32_t>(0x40 + i), i);
  CHECK(numbers_of(ports[2]) == Numbers{2, 6});
  CHECK(pool.in_use() == 6);
  CHECK(numbers_of(ports[0]) == Numbers{0, 4});
  CHECK(numbers_of(ports[1]) == Numbers{1, 5});
  CHECK(numbers_of(ports[3], 1) == Numbers{3});  // no more than asked for
  CHECK(numbers_of(ports[3]) == Numbers{7});
  CHECK(pool.in_use() == 0);
}

TEST_CASE("a full ring between shards drops and counts, and nobody waits", "[port]") {
  PacketPool pool0(1024);
  PacketPool pool1(16, 0, false, 1);
  Device device0(pool0);
  Device device1(pool1);
  ShardExchange exchange(1, 64);
  ShardPort port0(exchange, 0, device0);
  ShardPort port1(exchange, 1, device1);
  for (std::uint64_t i = 0; i < 100; ++i) device0.arrive(0x41, i);
  CHECK(numbers_of(port0).empty());
  CHECK(numbers_of(port0).empty());
  CHECK(port0.counters().handed_over == 64);
  CHECK(port0.counters().handed_over_full == 36);
  CHECK(pool0.in_use() == 64);
  // The other side has 16 packets of its own: what finds none is lost, and counted.
  std::array<Packet*, 32> burst;
  CHECK(port1.rx(burst) == 16);
  CHECK(port1.counters().taken_no_packet == 16);
  for (std::size_t i = 0; i < 16; ++i) pool1.free(burst[i]);
  exchange.drain();
  CHECK(pool0.in_use() == 0);
  CHECK(pool1.in_use() == 0);
}

// Whoever lent the payload may want it back while the other thread reads.
TEST_CASE("what another shard's thread gets refers to nobody's memory", "[port]") {
  constexpr std::uint16_t kBytes = 300;
  const bool one_pool = GENERATE(false, true);
  CAPTURE(one_pool);
  PacketPool pool0(64, 512);
  PacketPool pool1(64, 512, false, 1);
  Device device0(pool0);
  Device device1(one_pool ? pool0 : pool1);
  ShardExchange exchange(1, 64);
  ShardPort port0(exchange, 0, device0);
  ShardPort port1(exchange, 1, device1);
  std::vector<std::byte> memory(kBytes, std::byte{0x5A});
  for (const std::uint32_t queue_pair : {0x41U, 0x43U}) {
    device0.arrive(queue_pair, 0);
    device0.lend_last(memory);
  }
  CHECK(pool0.lent() == 2);
  CHECK(numbers_of(port0).empty());
  // On one thread the list is the same, and the end of the loans finds them.
  CHECK(pool0.lent() == (one_pool ? 2 : 0));
  if (one_pool) pool0.end_loans();
  std::fill(memory.begin(), memory.end(), std::byte{0xDD});
  std::array<Packet*, 2> burst{};
  REQUIRE(port1.rx(burst) == 2);
  for (Packet* const packet : burst) {
    CHECK(packet->payload_kind == PayloadKind::owned);
    CHECK(packet->payload_bytes == kBytes);
    CHECK(std::all_of(packet->payload, packet->payload + kBytes,
                      [](std::byte b) { return b == std::byte{0x5A}; }));
    port1.packets().free(packet);
  }
  CHECK(numbers_of(port0).empty());
  CHECK(pool0.in_use() + pool1.in_use() == 0);
}

TEST_CASE("an exchange needs room for a call and a sensible number of shards", "[port]") {
  CHECK_THROWS_AS(ShardExchange(4, 64), std::invalid_argument);
  CHECK_THROWS_AS(ShardExchange(1, 63), std::invalid_argument);
}

}  // namespace
}  // namespace paceline
