// A slab of packets with a LIFO free list, owned by one thread. Packets of one pool may travel
// through the whole fabric of that thread; each returns to its home pool.
//
// Over a PacketSource, it is that list alone: a cache of packets whose memory belongs to the
// source, filled and emptied many at a time. Packets then also come in and leave by the port (a
// device writes into packets that the source gave it, and keeps packets that it sends), which
// come() and go() report. alloc and free work the same per packet.
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

// Gives packets to a pool without memory of its own, and takes back those that the pool has too
// many of. A source may serve several pools on several threads.
class PacketSource {
 public:
  PacketSource() = default;
  PacketSource(const PacketSource&) = delete;
  PacketSource& operator=(const PacketSource&) = delete;
  virtual ~PacketSource() = default;

  // Fills `out` from the front with packets that have their payload buffer; all of it, or as many
  // as there are. Returns how many.
  virtual std::size_t take(std::span<Packet*> out) = 0;
  virtual void give(std::span<Packet* const> packets) = 0;
};

// A port's part in loans: what of them the pool does not know. Called on the pool's thread.
class LoanKeeper {
 public:
  LoanKeeper() = default;
  LoanKeeper(const LoanKeeper&) = delete;
  LoanKeeper& operator=(const LoanKeeper&) = delete;

  // The packet does not refer to its payload's bytes any more; if it came in by the port that way,
  // they go back to who lent them.
  virtual void release(Packet& packet) = 0;
  // A packet that has left by the port refers to no lent memory any more.
  virtual void recall() = 0;
  // Nor does what came in by it.
  virtual void own_received() = 0;

 protected:
  ~LoanKeeper() = default;
};

class PacketPool {
 public:
  // payload_room: bytes of payload buffer behind each packet, 0 where payloads are elided.
  // growable: alloc grows the slab when empty (virtual time only); else it returns nullptr.
  // memory: where packets come from (payload buffers do not); must outlive the pool.
  // long_packets: they are LongPackets.
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
  // A cache over `source`, which must outlive the pool. capacity: of the source's packets, how many
  // the pool's user may hold; scarce() goes by it. payload_room: what each of them has.
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

  // A packet of this pool equal to `packet`, which may be of another; nullptr when empty. A payload
  // that is owned or lent is copied, and must fit; a tail that is in use is, where both pools have
  // such.
  Packet* copy_of(const Packet& packet);

  // The packet, of this pool, refers to its payload's bytes in place of having them; they stay
  // there, as they are, until it is freed or end_loans() is called.
  void lend(Packet& packet, const std::byte* bytes) {
    packet.payload_kind = PayloadKind::lent;
    packet.loan = bytes;
    place_of(packet) = static_cast<std::uint32_t>(lent_.size());
    lent_.push_back(&packet);
  }
  // The packet, whose payload is lent, has none any more.
  void drop_loan(Packet& packet) {
    std::uint32_t& place = place_of(packet);
    lent_[place] = lent_.back();
    place_of(*lent_.back()) = place;
    lent_.pop_back();
    packet.payload_kind = PayloadKind::none;
    if (keeper_ != nullptr) [[unlikely]]
      keeper_->release(packet);
  }
  // Every packet of the pool that refers to memory elsewhere gets its bytes now, and so does what
  // has left by the port. Takes a copy of each, which is what not to lend them would have taken.
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
  // The same of one packet, whose payload is lent; of all that are the pool's user's.
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
  // Packets of the source have come in by the port and belong to the pool's user now: `count` in
  // use more.
  void come(std::size_t count) {
    in_use_ += count;
    held_ += count;
  }
  // `count` packets of the pool's user have left by the port.
  void go(std::size_t count) {
    in_use_ -= count;
    held_ -= count;
  }
  // Keeps the cache from swallowing the source where more comes in than is sent.
  void settle() {
    if (held_ - in_use_ > kMostFree) [[unlikely]]
      give_back(kMostFree / 2);
  }
  // All but `keep` of the free ones go back to the source. Nothing without a source.
  void give_back(std::size_t keep);
  std::size_t free_packets() const { return held_ - in_use_; }

  std::size_t in_use() const { return in_use_; }
  std::size_t capacity() const { return capacity_; }
  // Half of what there will ever be is in use: nobody should keep packets for long.
  bool scarce() const { return !growable_ && in_use_ * 2 >= capacity_; }
  std::uint64_t exhausted() const { return exhausted_; }
  std::uint16_t payload_room() const { return payload_room_; }
  std::uint16_t id() const { return pool_id_; }

 private:
  // How many packets a cache over a source takes at a time, and how many free ones it may hold.
  static constexpr std::size_t kRefill = 32;
  static constexpr std::size_t kMostFree = 64;

  // Over a source it is a device's port that sends, which wants the ICRC and no route.
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
