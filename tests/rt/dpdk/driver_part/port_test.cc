// The corners of a port over a DPDK device: what is full, empty, short, long, in pieces or not
// RoCE.
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <vector>

#include "dataplane/wire/packet/parse.h"
#include "tests/rt/dpdk/environment.h"
#include "tests/rt/dpdk/ring_pair.h"

namespace paceline::test {
namespace {

constexpr Picos kNow{5'000'000};

TEST_CASE("dpdk port: a packet arrives as it was sent, in the same place of memory") {
  RingPair pair;
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  constexpr std::array<std::uint16_t, 9> kBytes = {0, 1, 3, 4, 61, 64, 1000, 1023, 1024};
  for (const std::uint16_t bytes : kBytes) {
    Packet* const sent = pair.make(a, bytes);
    REQUIRE(sent != nullptr);
    const std::byte* const place = sent->payload;
    const std::uint32_t icrc = sent->icrc;
    const std::uint16_t headers = sent->header_bytes;
    const std::uint32_t wire_bytes =
        a.info().wire.wire_bytes(sent->frame_bytes(), sent->payload_bytes);
    REQUIRE(a.tx(kNow, 3, {&sent, 1}) == 1);
    Packet* const packet = RingPair::receive(b);
    REQUIRE(packet == sent);  // the mbuf itself crossed
    CHECK(packet->payload == place);
    CHECK(packet->pool_id == b.packets().id());
    CHECK(packet->header_bytes == headers);
    CHECK(packet->bth_offset == 14 + 20 + 8);
    CHECK(packet->icrc == icrc);
    CHECK(packet->wire_bytes == wire_bytes);
    CHECK(packet->traffic_class == 0);  // of the DSCP in the header, which is 0
    CHECK(packet->ecn == Ecn::ect0);
    CHECK(RingPair::payload_is(*packet, bytes));
    wire::ParsedPacket parsed;
    CHECK(wire::parse_headers(packet->header_view(), packet->payload_bytes, parsed) ==
          wire::ParseError::ok);
    CHECK(parsed.payload_bytes == bytes);
    CHECK(b.packets().in_use() == 1);
    b.packets().free(packet);
  }
  CHECK(a.packets().in_use() == 0);
  CHECK(b.packets().in_use() == 0);
  CHECK(a.counters().tx_packets == 9);
  CHECK(b.counters().rx_packets == 9);
  CHECK(a.counters().tx_bytes == b.counters().rx_bytes);
  CHECK(pair.devices[1]->statistics().rx_packets == 9);
}

TEST_CASE("dpdk port: short frames are filled with zeros to 60 bytes") {
  RingPair pair;
  Packet* const sent = pair.make(*pair.ports[0], 0);
  REQUIRE(sent->header_bytes == 54);
  std::memset(sent->payload, 0xEE, 64);  // what was there before
  const std::uint32_t icrc = sent->icrc;
  REQUIRE(pair.ports[0]->tx(kNow, 3, {&sent, 1}) == 1);
  rte_mbuf* mbuf = nullptr;
  REQUIRE(rte_eth_rx_burst(pair.devices[1]->port_id(), 0, &mbuf, 1) == 1);
  CHECK(mbuf->pkt_len == 60);
  CHECK(mbuf->data_len == 60);
  const auto* const frame = rte_pktmbuf_mtod(mbuf, const std::byte*);
  CHECK(wire::load_le32(frame + 54) == icrc);
  CHECK(wire::load_be16(frame + 58) == 0);
  rte_pktmbuf_free(mbuf);
}

TEST_CASE("dpdk port: what is not RoCE goes out without ICRC and comes up whole") {
  RingPair pair;
  Packet* sent = pair.ports[0]->packets().alloc();
  sent->header.fill(std::byte{0});
  sent->header[12] = std::byte{0x08};
  sent->header[13] = std::byte{0x06};  // ARP
  sent->header_bytes = 42;
  sent->payload_bytes = 0;
  sent->payload_kind = PayloadKind::none;
  sent->bth_offset = 0;
  sent->icrc = 0xFFFF'FFFF;
  REQUIRE(pair.ports[0]->tx(kNow, 0, {&sent, 1}) == 1);
  Packet* const packet = RingPair::receive(*pair.ports[1]);
  REQUIRE(packet != nullptr);
  CHECK(packet->bth_offset == 0);
  CHECK(packet->header_bytes == 60);
  CHECK(packet->payload_bytes == 0);
  for (std::size_t i = 42; i < 60; ++i) CHECK(packet->header[i] == std::byte{0});
  CHECK(pair.ports[1]->counters().rx_other == 1);
  pair.ports[1]->packets().free(packet);
}

TEST_CASE("dpdk port: a full transmit ring leaves the packets with the caller, unharmed") {
  RingPair pair({.slots = 64});
  DpdkPort& a = *pair.ports[0];
  std::vector<Packet*> packets;
  for (unsigned i = 0; i < 100; ++i) packets.push_back(pair.make(a, 64, i));
  std::size_t sent = 0;
  std::size_t calls = 0;
  while (sent < packets.size()) {
    const std::size_t n = a.tx(kNow, 3, std::span<Packet* const>(packets).subspan(sent));
    ++calls;
    sent += n;
    if (a.tx_ready_at(3) > kNow) break;
    REQUIRE(n != 0);
  }
  CHECK(sent == 63);  // a ring of DPDK holds one less than its size
  CHECK(a.counters().tx_full == 1);
  CHECK(a.counters().tx_packets == 63);
  CHECK(a.tx_ready_at(3) <= kNow + picos_from_micros(2));
  CHECK(a.packets().in_use() == 37);
  // Some place is made; the rest continues where it stopped.
  for (unsigned i = 0; i < 40; ++i) {
    Packet* const packet = RingPair::receive(*pair.ports[1]);
    REQUIRE(packet != nullptr);
    CHECK(RingPair::payload_is(*packet, 64, i));
    pair.ports[1]->packets().free(packet);
  }
  const Picos later_on = a.tx_ready_at(3);
  while (sent < packets.size()) {
    sent += a.tx(later_on, 3, std::span<Packet* const>(packets).subspan(sent));
  }
  for (unsigned i = 40; i < 100; ++i) {
    Packet* const packet = RingPair::receive(*pair.ports[1]);
    REQUIRE(packet != nullptr);
    CHECK(RingPair::payload_is(*packet, 64, i));
    pair.ports[1]->packets().free(packet);
  }
  CHECK(a.packets().in_use() == 0);
  CHECK(pair.ports[1]->packets().in_use() == 0);
}

TEST_CASE("dpdk port: without packets nothing can be sent, and it goes on when some are back") {
  RingPair pair({.packets = 96, .slots = 256});
  DpdkPort& a = *pair.ports[0];
  std::vector<Packet*> packets;
  while (Packet* packet = pair.make(a, 8)) packets.push_back(packet);
  CHECK(packets.size() == 96);
  CHECK(a.packets().exhausted() == 1);
  CHECK(a.packets().scarce());
  CHECK(pair.memory->outside() == 96);
  // Sent, they are still out: with the receiver, who has not looked.
  for (Packet* packet : packets) REQUIRE(a.tx(kNow, 3, {&packet, 1}) == 1);
  CHECK(a.packets().in_use() == 0);
  CHECK(!a.packets().scarce());
  CHECK(a.packets().alloc() == nullptr);
  for (std::size_t i = 0; i < 96; ++i) {
    Packet* const packet = RingPair::receive(*pair.ports[1]);
    REQUIRE(packet != nullptr);
    pair.ports[1]->packets().free(packet);
  }
  pair.ports[1]->packets().give_back(0);
  CHECK(pair.memory->outside() == 0);
  Packet* const packet = a.packets().alloc();
  REQUIRE(packet != nullptr);
  a.packets().free(packet);
}

TEST_CASE("dpdk port: a packet that was received is as good as new for sending") {
  RingPair pair({.packets = 64, .slots = 64});
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  // The same packet to and fro, its payload where the last frame left it, short and full in turn.
  Packet* packet = pair.make(a, 1024, 7);
  for (unsigned round = 0; round < 50; ++round) {
    DpdkPort& from = round % 2 == 0 ? a : b;
    DpdkPort& to = round % 2 == 0 ? b : a;
    REQUIRE(from.tx(kNow, 3, {&packet, 1}) == 1);
    packet = RingPair::receive(to);
    REQUIRE(packet != nullptr);
    CHECK(RingPair::payload_is(*packet, round % 3 == 0 ? 1024 : 5, 7));
    to.packets().free(packet);
    Packet* const next = pair.make(to, (round + 1) % 3 == 0 ? 1024 : 5, 7);
    REQUIRE(next == packet);  // last in, first out
  }
  (a.packets().in_use() == 1 ? a : b).packets().free(packet);
  CHECK(a.packets().in_use() + b.packets().in_use() == 0);
}

TEST_CASE("dpdk port: a payload that does not exist cannot be sent; the rest is") {
  RingPair pair;
  DpdkPort& a = *pair.ports[0];
  std::array<Packet*, 3> burst = {pair.make(a, 4, 1), pair.make(a, 4, 2), pair.make(a, 4, 3)};
  burst[1]->payload_kind = PayloadKind::elided;
  std::size_t sent = 0;
  while (sent < burst.size()) {
    const std::size_t n = a.tx(kNow, 3, std::span<Packet* const>(burst).subspan(sent));
    REQUIRE(n != 0);
    sent += n;
  }
  CHECK(a.counters().tx_elided == 1);
  CHECK(a.counters().tx_packets == 2);
  CHECK(a.packets().in_use() == 0);
  for (const unsigned first : {1U, 3U}) {
    Packet* const packet = RingPair::receive(*pair.ports[1]);
    REQUIRE(packet != nullptr);
    CHECK(RingPair::payload_is(*packet, 4, first));
    pair.ports[1]->packets().free(packet);
  }
}

// --- what a driver may hand over ---

// A copy of a frame in mbufs of `pool`, cut into pieces of at most `piece` bytes.
rte_mbuf* in_pieces(rte_mempool* pool, std::span<const std::byte> frame, std::size_t piece) {
  rte_mbuf* head = nullptr;
  while (!frame.empty()) {
    const std::size_t n = std::min(piece, frame.size());
    rte_mbuf* const mbuf = rte_pktmbuf_alloc(pool);
    REQUIRE(mbuf != nullptr);
    std::memcpy(rte_pktmbuf_append(mbuf, static_cast<std::uint16_t>(n)), frame.data(), n);
    if (head == nullptr) {
      head = mbuf;
    } else {
      REQUIRE(rte_pktmbuf_chain(head, mbuf) == 0);
    }
    frame = frame.subspan(n);
  }
  return head;
}

std::vector<std::byte> frame_of(const Packet& packet) {
  std::vector<std::byte> frame(packet.header.begin(), packet.header.begin() + packet.header_bytes);
  frame.insert(frame.end(), packet.payload, packet.payload + packet.payload_bytes);
  std::array<std::byte, 4> icrc;
  wire::store_le32(icrc.data(), packet.icrc);
  frame.insert(frame.end(), icrc.begin(), icrc.end());
  return frame;
}

TEST_CASE("dpdk port: frames in pieces, or of another memory, are copied and counted") {
  RingPair pair;
  DpdkPort& a = *pair.ports[0];
  DpdkPort& b = *pair.ports[1];
  rte_mempool* const elsewhere =
      rte_pktmbuf_pool_create("elsewhere", 511, 0, 0, 2048 + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
  REQUIRE(elsewhere != nullptr);
  Packet* const model = pair.make(a, 900, 9);
  const std::vector<std::byte> frame = frame_of(*model);
  a.packets().free(model);
  a.packets().give_back(0);
  std::uint64_t pieces = 0;
  for (const std::size_t piece : {20U, 54U, 60U, 300U, 2000U}) {
    for (rte_mempool* const pool : {elsewhere, pair.memory->handle()}) {
      rte_mbuf* mbuf = in_pieces(pool, frame, piece);
      pieces += mbuf->nb_segs > 1;
      REQUIRE(rte_eth_tx_burst(pair.devices[0]->port_id(), 0, &mbuf, 1) == 1);
      Packet* const packet = RingPair::receive(b);
      REQUIRE(packet != nullptr);
      CHECK(RingPair::payload_is(*packet, 900, 9));
      CHECK(packet->icrc == model->icrc);
      b.packets().free(packet);
    }
  }
  CHECK(b.counters().rx_packets == 10);
  CHECK(b.counters().rx_multi_segment == pieces);
  CHECK(b.counters().rx_moved == 1);
  CHECK(rte_mempool_in_use_count(elsewhere) == 0);

  // Too near the front of its mbuf for the headers of the next user.
  rte_mbuf* front = in_pieces(pair.memory->handle(), frame, 2000);
  std::memmove(static_cast<std::byte*>(front->buf_addr) + 20, rte_pktmbuf_mtod(front, std::byte*),
               frame.size());
  front->data_off = 20;
  REQUIRE(rte_eth_tx_burst(pair.devices[0]->port_id(), 0, &front, 1) == 1);
  Packet* const moved = RingPair::receive(b);
  REQUIRE(moved != nullptr);
  CHECK(RingPair::payload_is(*moved, 900, 9));
  CHECK(b.counters().rx_moved == 2);
  b.packets().free(moved);

  // Longer than any payload may be: dropped, in one piece or several.
  std::vector<std::byte> longer = frame;
  longer[12] = std::byte{0xFF};  // no IP: comes whole
  longer.resize(128 + 1024 + 4);
  for (const std::size_t piece : {600U, 4000U}) {
    rte_mbuf* mbuf = in_pieces(elsewhere, longer, piece);
    REQUIRE(rte_eth_tx_burst(pair.devices[0]->port_id(), 0, &mbuf, 1) == 1);
    CHECK(RingPair::receive(b) == nullptr);
  }
  std::vector<std::byte> monster(5000);
  rte_mbuf* mbuf = in_pieces(elsewhere, monster, 2000);
  REQUIRE(rte_eth_tx_burst(pair.devices[0]->port_id(), 0, &mbuf, 1) == 1);
  CHECK(RingPair::receive(b) == nullptr);
  CHECK(b.counters().rx_too_long == 3);

  // And no packet to copy into.
  std::vector<Packet*> all;
  while (Packet* packet = b.packets().alloc()) all.push_back(packet);
  mbuf = in_pieces(elsewhere, frame, 100);
  REQUIRE(rte_eth_tx_burst(pair.devices[0]->port_id(), 0, &mbuf, 1) == 1);
  CHECK(RingPair::receive(b) == nullptr);
  CHECK(b.counters().rx_no_packet == 1);
  for (Packet* packet : all) b.packets().free(packet);

  CHECK(rte_mempool_in_use_count(elsewhere) == 0);
  b.packets().give_back(0);
  CHECK(pair.memory->outside() == 0);
  rte_mempool_free(elsewhere);
}

TEST_CASE("dpdk device: what it says of itself") {
  RingPair pair;
  const DpdkCapabilities& c = pair.devices[0]->capabilities();
  CHECK(c.driver == "net_ring");
  CHECK(c.device == pair.cable->device(0));
  CHECK(c.tx_multi_segment);
  CHECK(c.send_path == SendPath::handed_on);
  CHECK_THAT(c.summary(), Catch::Contains("sent payload read from registered memory"));
  CHECK(!c.rss);
  CHECK(!c.flow_rules);
  CHECK(c.summary().find("net_ring") != std::string::npos);
  const std::vector<std::string> missing = c.missing();
  CHECK(missing.size() == 5);
  for (const std::string& line : missing) {
    CHECK(line.find(c.device) == 0);
    CHECK(line.find('\n') == std::string::npos);
  }
}

TEST_CASE("dpdk: every refusal says what is wrong") {
  RingPair pair;
  DpdkMemory* const memory = pair.memory.get();
  const auto refused = [&](const std::string& name, std::uint16_t mtu) {
    DpdkDeviceSettings settings;
    settings.device = name;
    settings.mtu_bytes = mtu;
    const DpdkDeviceOpened opened = DpdkDevice::open(eal(), settings, {&memory, 1});
    CHECK(opened.device == nullptr);
    return opened.error;
  };
  CHECK_THAT(refused("net_nonsense0", 1024), Catch::Contains("\"net_nonsense0\": cannot be made"));
  CHECK_THAT(refused("net_null0", 4096),
             Catch::Contains("mtu_bytes = 4096") && Catch::Contains("1024"));
  CHECK_THAT(refused("net_pcap0,rx_pcap=/nonexistent/x.pcap", 1024),
             Catch::Contains("cannot be made") && Catch::Contains("x.pcap"));

  const auto port_refused = [&](DpdkPortSettings settings) {
    const DpdkPortMade made = DpdkPort::make(*pair.devices[0], settings);
    CHECK(made.port == nullptr);
    return made.error;
  };
  DpdkPortSettings settings;
  settings.queue = 1;
  CHECK_THAT(port_refused(settings), Catch::Contains("queue = 1"));
  settings = {};
  settings.engine_packets = 513;
  CHECK_THAT(port_refused(settings), Catch::Contains("512"));
  // 512 packets, two times 1024 descriptors.
  CHECK_THAT(port_refused({}), Catch::Contains("leaves the engine 0"));

  const auto memory_refused = [](const char* name, std::uint32_t packets) {
    DpdkMemorySettings wanted;
    wanted.name = name;
    wanted.packets = packets;
    return DpdkMemory::make(wanted).error;
  };
  CHECK_THAT(memory_refused("packets", 64), Catch::Contains("File exists"));
  CHECK_THAT(memory_refused("b", 2'000'000),
             Catch::Contains("Cannot allocate memory") && Catch::Contains("2000000 packets"));
  CHECK_THAT(memory_refused("c", 5), Catch::Contains("64 or more"));
  CHECK_THAT(DpdkRingCable::make("pair", 64).error, Catch::Contains("\"pair\""));
  CHECK_THAT(DpdkRingCable::make("other", 60).error, Catch::Contains("power of two"));
  CHECK_THAT(Eal::start({}).error, Catch::Contains("already"));
}

}  // namespace
}  // namespace paceline::test
