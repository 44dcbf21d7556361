#include "dataplane/port/packet_pool.h"

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory_resource>

namespace paceline {
namespace {

TEST_CASE("packet pool: a copy has all of the packet, and a payload buffer and home of its own") {
  PacketPool home(2, 64, false, 3);
  PacketPool other(1, 64, false, 4);
  Packet* packet = home.alloc();
  REQUIRE(packet != nullptr);
  Packet* behind = home.alloc();
  packet->next = behind;
  packet->time = Picos{42};
  packet->header_bytes = 54;
  packet->header.fill(std::byte{0x5A});
  packet->flags = packet_flag::corrupt;
  packet->payload_kind = PayloadKind::owned;
  packet->payload_bytes = 64;
  for (std::size_t i = 0; i < 64; ++i) packet->payload[i] = static_cast<std::byte>(i);

  Packet* copy = other.copy_of(*packet);
  REQUIRE(copy != nullptr);
  CHECK(copy->next == nullptr);
  CHECK(copy->pool_id == 4);
  CHECK(copy->payload != packet->payload);
  CHECK(copy->time == packet->time);
  CHECK(copy->flags == packet->flags);
  CHECK(copy->header == packet->header);
  packet->payload[0] = std::byte{0xFF};  // the copy is not touched by it
  for (std::size_t i = 0; i < 64; ++i) CHECK(copy->payload[i] == static_cast<std::byte>(i));

  CHECK(other.copy_of(*packet) == nullptr);  // that was its last
  CHECK(other.exhausted() == 1);
  other.free(copy);
  CHECK(other.in_use() == 0);
  CHECK(home.in_use() == 2);
}

TEST_CASE("packet pool: long packets have a tail behind the header, and it is copied when in use") {
  PacketPool home(3, 0, true, 0, *std::pmr::new_delete_resource(), true);
  PacketPool other(1, 0, true, 1, *std::pmr::new_delete_resource(), true);
  PacketPool plain(1);
  Packet* packet = home.alloc();
  Packet* neighbour = home.alloc();
  CHECK(tail_of(*packet) == packet->header.data() + kMaxHeaderBytes);
  std::fill_n(tail_of(*packet), kPacketTailBytes, std::byte{0x11});
  std::fill_n(tail_of(*neighbour), kPacketTailBytes, std::byte{0x22});
  packet->header_bytes = 54;
  packet->flags = packet_flag::telemetry;
  packet->records = 5;
  Packet* copy = other.copy_of(*packet);
  REQUIRE(copy != nullptr);
  CHECK(std::all_of(tail_of(*copy), tail_of(*copy) + kPacketTailBytes,
                    [](std::byte b) { return b == std::byte{0x11}; }));
  CHECK(copy->records == 5);
  // Where there is no tail nobody takes it for one.
  Packet* short_copy = plain.copy_of(*packet);
  REQUIRE(short_copy != nullptr);
  CHECK(short_copy->flags == 0);
  // Headers that continue in the tail.
  neighbour->flags = 0;
  neighbour->header_bytes = kMaxHeaderBytes + 8;
  Packet* spilled = home.copy_of(*neighbour);
  CHECK(spilled->header_view().back() == std::byte{0x22});
  CHECK(*tail_of(*packet) == std::byte{0x11});
  for (Packet* p : {packet, neighbour, spilled}) home.free(p);
}

TEST_CASE("packet pool: a payload that is lent is where it was until the loan ends") {
  const bool long_packets = GENERATE(false, true);
  PacketPool home(3, 64, false, 0, *std::pmr::new_delete_resource(), long_packets);
  PacketPool other(1, 64, false, 1);
  std::array<std::byte, 64> memory;
  memory.fill(std::byte{1});
  Packet* packet = home.alloc();
  Packet* freed = home.alloc();
  std::byte* const buffer = packet->payload;
  for (Packet* p : {packet, freed}) {
    p->payload_bytes = 64;
    home.lend(*p, memory.data());
    CHECK(p->has_bytes());
    CHECK(p->payload_view().data() == memory.data());
  }
  CHECK(home.lent() == 2);
  Packet* copy = other.copy_of(*packet);
  REQUIRE(copy != nullptr);
  CHECK(copy->payload_kind == PayloadKind::owned);
  std::byte* const never = freed->payload;
  std::memset(never, 7, 64);
  home.free(freed);
  memory.fill(std::byte{2});
  CHECK(packet->payload_view()[63] == std::byte{2});
  CHECK(copy->payload_view()[63] == std::byte{1});
  home.end_loans();
  memory.fill(std::byte{3});
  CHECK(packet->payload_kind == PayloadKind::owned);
  CHECK(packet->payload_view().data() == buffer);
  CHECK(packet->payload_view()[0] == std::byte{2});
  CHECK(*never == std::byte{7});  // nobody's packet is left alone
}

TEST_CASE("packet pool: an elided payload is copied as what stands for it") {
  PacketPool pool(2);
  Packet* packet = pool.alloc();
  packet->payload_kind = PayloadKind::elided;
  packet->payload_bytes = 4096;
  packet->digest = 77;
  packet->header_bytes = 54;
  Packet* copy = pool.copy_of(*packet);
  REQUIRE(copy != nullptr);
  CHECK(copy->payload == nullptr);
  CHECK(copy->payload_bytes == 4096);
  CHECK(copy->digest == 77);
}

}  // namespace
}  // namespace paceline
