// A slab of packets with a LIFO free list, owned by one thread. Packets of one pool may travel
// through the whole fabric of that thread; each returns to its home pool.
//
// Over a PacketSource, the pool is that list alone: a cache of packets whose memory belongs to the
// source, filled and emptied many at a time. Packets then also come in and leave by the port: a
// device writes into packets that the source gave it, and keeps packets that it sends. The port
// reports this by come() and go(). alloc and free work the same per packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "dataplane/base/containers/slab.h"
#include "dataplane/port/packet.h"

namespace paceline {

// Gives packets to a pool without memory of its own, and takes back those that the pool has in
// excess. A source may serve several pools on several threads.
class PacketSource {
 public:
  PacketSource() = default;
  PacketSource(const PacketSource&) = delete;
  PacketSource& operator=(const PacketSource&) = delete;
  virtual ~PacketSource() = default;

  // Fills `out` from the front with packets that have their payload buffer: all of it, or as many
  // as are left. Returns how many.
  virtual std::size_t take(std::span<Packet*> out) = 0;
  virtual void give(std::span<Packet* const> packets) = 0;
};

// A port's part in loans: it knows the loans that the pool does not know. Called on the pool's
// thread.
class LoanKeeper {
 public:
  LoanKeeper() = default;
  LoanKeeper(const LoanKeeper&) = delete;
  LoanKeeper& operator=(const LoanKeeper&) = delete;

  // The packet no longer refers to its payload's bytes. If they came in by the port as a loan, they
  // go back to the lender.
  virtual void release(Packet& packet) = 0;
  // From now on, packets that have left by the port refer to no lent memory.
  virtual void recall() = 0;
  // Nor do packets that came in by it.
  virtual void own_received() = 0;

 protected:
  ~LoanKeeper() = default;
};

class PacketPool {
 public:
  // payload_room: bytes of payload buffer behind each packet, 0 where payloads are elided.
  // growable: alloc grows the slab when it is empty (virtual time only); else it returns nullptr.
  // memory: the source of packets (not of payload buffers); must outlive the pool.
  // long_packets: the packets are LongPackets.
  explicit PacketPool(std::size_t initial_packets, std::uint16_t payload_room = 0,
                      bool growable = false, std::uint16_t pool_id = 0,
                      std::pmr::memory_resource& memory = *std::pmr::new_delete_resource(),
                      bool long_packets = false)
      : payload_room_(payload_room),
        growable_(growable),
        long_packets_(long_packets),
        pool_id_(pool_id),
        memory_(memory) {
    add_chunk(initial_packets == 0 ? 1 : initial_packets);
  }
  // A cache over `source`, which must outlive the pool. capacity: how many of the source's packets
  // the pool's user may hold; scarce() compares with it. payload_room: of each packet.
  PacketPool(PacketSource& source, std::size_t capacity, std::uint16_t payload_room,
             std::uint16_t pool_id = 0)
      : source_(&source),
        capacity_(capacity),
        payload_room_(payload_room),
        growable_(false),
        pool_id_(pool_id),
        memory_(*std::pmr::new_delete_resource()) {}
  ~PacketPool() { give_back(0); }
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // A packet with unspecified contents except payload, pool_id and flags == 0; nullptr when empty.
  Packet* alloc() {
    if (free_ == nullptr && !refill()) return nullptr;
    Packet* packet = free_;
    free_ = packet->next;
    __builtin_prefetch(free_, 1);  // the next one may have been free for long
    packet->next = nullptr;
    packet->flags = 0;
    ++in_use_;
    return packet;
  }

  // A packet of this pool equal to `packet`, which may belong to another pool; nullptr when empty.
  // An owned or lent payload is copied, and must fit. A tail in use is copied if both pools have
  // tails.
  Packet* copy_of(const Packet& packet);

  // The packet, of this pool, refers to its payload's bytes instead of having a copy. They must
  // stay there unchanged until the packet is freed or end_loans() is called.
  void lend(Packet& packet, const std::byte* bytes) {
    packet.payload_kind = PayloadKind::lent;
    packet.loan = bytes;
    place_of(packet) = static_cast<std::uint32_t>(lent_.size());
    lent_.push_back(&packet);
  }
  // A packet with a lent payload loses its payload.
  void drop_loan(Packet& packet) {
    std::uint32_t& place = place_of(packet);
    lent_[place] = lent_.back();
    place_of(*lent_.back()) = place;
    lent_.pop_back();
    packet.payload_kind = PayloadKind::none;
    if (keeper_ != nullptr) [[unlikely]]
      keeper_->release(packet);
  }
  // Every packet of the pool that refers to memory elsewhere gets its own bytes now, and so does
  // every packet that has left by the port. This costs one copy each: the same as not lending.
  void end_loans() {
    own_loans();
    if (keeper_ != nullptr) [[unlikely]]
      keeper_->recall();
  }
  // The pool's user has handled a received burst: packets that it keeps get their own copy of lent
  // payloads. The lender may be on this thread, and could not wait for them.
  void burst_seen() {
    if (keeper_ != nullptr) [[unlikely]]
      keeper_->own_received();
  }
  // The same for one packet with a lent payload; own_loans() does it for all packets of the pool's
  // user.
  void own_loan(Packet& packet);
  void own_loans();
  // Before the first packet is lent. `keeper` must outlive the pool's use.
  void keep_loans_with(LoanKeeper& keeper) {
    keeper_ = &keeper;
    lent_.reserve(capacity_);
  }
  std::size_t lent() const { return lent_.size(); }

  void free(Packet* packet) {
    if (packet->payload_kind == PayloadKind::lent) [[unlikely]]
      drop_loan(*packet);
    packet->next = free_;
    free_ = packet;
    --in_use_;
  }

  // --- over a source: called by the port, once per burst ---
  // `count` packets of the source have come in by the port. They now belong to the pool's user.
  void come(std::size_t count) {
    in_use_ += count;
    held_ += count;
  }
  // `count` packets of the pool's user have left by the port.
  void go(std::size_t count) {
    in_use_ -= count;
    held_ -= count;
  }
  // Keeps the cache from swallowing the source where more packets come in than are sent.
  void settle() {
    if (held_ - in_use_ > kMostFree) [[unlikely]]
      give_back(kMostFree / 2);
  }
  // All free packets but `keep` go back to the source. Does nothing without a source.
  void give_back(std::size_t keep);
  std::size_t free_packets() const { return held_ - in_use_; }

  std::size_t in_use() const { return in_use_; }
  std::size_t capacity() const { return capacity_; }
  // Half or more of all packets there will ever be are in use: nobody should keep packets for long.
  bool scarce() const { return !growable_ && in_use_ * 2 >= capacity_; }
  std::uint64_t exhausted() const { return exhausted_; }
  std::uint16_t payload_room() const { return payload_room_; }
  std::uint16_t id() const { return pool_id_; }

 private:
  // How many packets a cache over a source takes at a time, and how many free ones it may hold.
  static constexpr std::size_t kRefill = 32;
  static constexpr std::size_t kMostFree = 64;

  // Over a source, a device's port sends: it needs the ICRC and no route, so the route's place is
  // free.
  std::uint32_t& place_of(Packet& packet) const {
    return source_ == nullptr ? packet.loan_place : packet.route;
  }
  // False, and counted, if there is no packet.
  bool refill();
  void add_chunk(std::size_t packets);

  Packet* free_ = nullptr;
  std::size_t in_use_ = 0;
  std::size_t held_ = 0;  // over a source: in use and free
  PacketSource* source_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint64_t exhausted_ = 0;
  std::uint16_t payload_room_;
  bool growable_;
  bool long_packets_ = false;
  std::uint16_t pool_id_;
  std::pmr::memory_resource& memory_;
  std::deque<Slab<Packet>> chunks_;
  std::deque<Slab<LongPacket>> long_chunks_;
  std::vector<std::unique_ptr<std::byte[]>> payloads_;
  std::vector<Packet*> lent_;  // in no order
  LoanKeeper* keeper_ = nullptr;
};

}  // namespace paceline
