#include "dataplane/port/packet_pool.h"

#include <cassert>
#include <cstring>

namespace paceline {

Packet* PacketPool::copy_of(const Packet& packet) {
  Packet* copy = alloc();
  if (copy == nullptr) return nullptr;
  std::byte* const buffer = copy->payload;
  *copy = packet;
  copy->payload = buffer;
  copy->pool_id = pool_id_;
  copy->next = nullptr;
  if (packet.payload_kind == PayloadKind::owned && packet.payload_bytes != 0) {
    assert(packet.payload_bytes <= payload_room_);
    std::memcpy(buffer, packet.payload, packet.payload_bytes);
  }
  return copy;
}

void PacketPool::add_chunk(std::size_t packets) {
  Slab<Packet>& chunk = chunks_.emplace_back(packets, memory_);
  for (std::size_t i = 0; i < packets; ++i) chunk.emplace();
  std::byte* payload = nullptr;
  if (payload_room_ != 0) {
    payloads_.push_back(std::make_unique_for_overwrite<std::byte[]>(packets * payload_room_));
    payload = payloads_.back().get();
  }
  // Threaded back to front so that the first alloc returns the lowest address.
  for (std::size_t i = packets; i-- > 0;) {
    Packet& packet = chunk[i];
    packet.payload = payload == nullptr ? nullptr : payload + i * payload_room_;
    packet.pool_id = pool_id_;
    packet.next = free_;
    free_ = &packet;
  }
  capacity_ += packets;
}

}  // namespace paceline
