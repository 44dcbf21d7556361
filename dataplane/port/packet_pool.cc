#include "dataplane/port/packet_pool.h"

#include <algorithm>
#include <array>
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
  if (uses_tail(packet)) [[unlikely]] {
    if (long_packets_) {
      std::memcpy(tail_of(*copy), tail_of(packet), kPacketTailBytes);
    } else {
      copy->flags = static_cast<std::uint8_t>(copy->flags & ~packet_flag::telemetry);
    }
  }
  if (packet.has_bytes() && packet.payload_bytes != 0) {
    assert(packet.payload_bytes <= payload_room_);
    std::memcpy(buffer, packet.bytes(), packet.payload_bytes);
    copy->payload_kind = PayloadKind::owned;
  }
  return copy;
}

void PacketPool::own_loan(Packet& packet) {
  // A payload that was copied earlier is already in place.
  std::memmove(packet.payload, packet.loan, packet.payload_bytes);
  drop_loan(packet);
  packet.payload_kind = PayloadKind::owned;
}

void PacketPool::own_loans() {
  while (!lent_.empty()) own_loan(*lent_.back());
}

bool PacketPool::refill() {
  if (growable_) {
    add_chunk(capacity_);
    return true;
  }
  if (source_ != nullptr) {
    std::array<Packet*, kRefill> taken;
    const std::size_t n = source_->take(taken);
    // The first one taken is the first one used.
    for (std::size_t i = n; i-- > 0;) {
      taken[i]->pool_id = pool_id_;
      taken[i]->next = free_;
      free_ = taken[i];
    }
    held_ += n;
    if (n != 0) return true;
  }
  ++exhausted_;
  return false;
}

void PacketPool::give_back(std::size_t keep) {
  if (source_ == nullptr) return;
  std::array<Packet*, kRefill> given;
  while (free_packets() > keep) {
    const std::size_t n = std::min(given.size(), free_packets() - keep);
    for (std::size_t i = 0; i < n; ++i) {
      given[i] = free_;
      free_ = free_->next;
    }
    source_->give({given.data(), n});
    held_ -= n;
  }
}

void PacketPool::add_chunk(std::size_t packets) {
  Slab<Packet>* const plain = long_packets_ ? nullptr : &chunks_.emplace_back(packets, memory_);
  Slab<LongPacket>* const with_tail =
      long_packets_ ? &long_chunks_.emplace_back(packets, memory_) : nullptr;
  for (std::size_t i = 0; i < packets; ++i) {
    if (long_packets_) {
      with_tail->emplace();
    } else {
      plain->emplace();
    }
  }
  std::byte* payload = nullptr;
  if (payload_room_ != 0) {
    payloads_.push_back(std::make_unique_for_overwrite<std::byte[]>(packets * payload_room_));
    payload = payloads_.back().get();
  }
  // Threaded back to front so that the first alloc returns the lowest address.
  for (std::size_t i = packets; i-- > 0;) {
    Packet& packet = long_packets_ ? (*with_tail)[i].packet : (*plain)[i];
    packet.payload = payload == nullptr ? nullptr : payload + i * payload_room_;
    packet.pool_id = pool_id_;
    packet.next = free_;
    free_ = &packet;
  }
  capacity_ += packets;
  if (payload_room_ != 0) lent_.reserve(capacity_);
}

}  // namespace paceline
