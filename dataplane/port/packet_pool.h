// A slab of packets with a LIFO free list, owned by one thread. Packets of one pool may travel
// through the whole fabric of that thread; each returns to its home pool.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <vector>

#include "dataplane/base/slab.h"
#include "dataplane/port/packet.h"

namespace paceline {

class PacketPool {
 public:
  // payload_room: bytes of payload buffer behind each packet, 0 where payloads are elided.
  // growable: alloc grows the slab when empty (virtual time only); else it returns nullptr.
  // memory: where packets come from (payload buffers do not); must outlive the pool.
  explicit PacketPool(std::size_t initial_packets, std::uint16_t payload_room = 0,
                      bool growable = false, std::uint16_t pool_id = 0,
                      std::pmr::memory_resource& memory = *std::pmr::new_delete_resource())
      : payload_room_(payload_room), growable_(growable), pool_id_(pool_id), memory_(memory) {
    add_chunk(initial_packets == 0 ? 1 : initial_packets);
  }
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // A packet with unspecified contents except payload, pool_id and flags == 0; nullptr when empty.
  Packet* alloc() {
    if (free_ == nullptr) {
      if (!growable_) {
        ++exhausted_;
        return nullptr;
      }
      add_chunk(capacity_);
    }
    Packet* packet = free_;
    free_ = packet->next;
    packet->next = nullptr;
    packet->flags = 0;
    ++in_use_;
    return packet;
  }

  // A packet of this pool equal to `packet`, which may be of another; nullptr when empty. An owned
  // payload is copied, and must fit.
  Packet* copy_of(const Packet& packet);

  void free(Packet* packet) {
    packet->next = free_;
    free_ = packet;
    --in_use_;
  }

  std::size_t in_use() const { return in_use_; }
  std::size_t capacity() const { return capacity_; }
  // Half of what there will ever be is in use: nobody should keep packets for long.
  bool scarce() const { return !growable_ && in_use_ * 2 >= capacity_; }
  std::uint64_t exhausted() const { return exhausted_; }
  std::uint16_t payload_room() const { return payload_room_; }
  std::uint16_t id() const { return pool_id_; }

 private:
  void add_chunk(std::size_t packets);

  Packet* free_ = nullptr;
  std::size_t in_use_ = 0;
  std::size_t capacity_ = 0;
  std::uint64_t exhausted_ = 0;
  std::uint16_t payload_room_;
  bool growable_;
  std::uint16_t pool_id_;
  std::pmr::memory_resource& memory_;
  std::deque<Slab<Packet>> chunks_;
  std::vector<std::unique_ptr<std::byte[]>> payloads_;
};

}  // namespace paceline
