#include "dataplane/port/packet_pool.h"

#include <catch2/catch.hpp>

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
