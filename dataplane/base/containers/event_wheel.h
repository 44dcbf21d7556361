// The event queue of virtual time: which actor acts next, and when. Strictly ordered by (time,
// actor id), never by insertion, so that a run does not depend on how the queue is built inside.
//
// Every actor has at most one live entry: schedule() sets or moves it. Entries live in a ring of
// slots of equal width (an intrusive doubly linked list per slot: moving an entry is O(1) and
// leaves nothing behind), those beyond the ring's horizon in an indexed 4-ary heap, and the
// earliest slot is drained into a small sorted window from which pop() serves. An entry scheduled
// into the time the window covers is placed in order, so the slot width changes speed only, never
// the result.
//
// One thread. No allocation after construction except when the window meets a new record length.
#pragma once

#include <array>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory_resource>
#include <vector>

#include "dataplane/base/prefetch.h"
#include "dataplane/base/units.h"

namespace paceline {

class EventWheel {
 public:
  // Slot width, as a power of two of picoseconds, for the expected number of pops per simulated
  // microsecond over all actors: about two entries a slot, and never wider than 0.26 us, a fraction
  // of a link's delay, so that what a pop schedules rarely falls into the window again; at least 16
  // ps. In [4, 18].
  static unsigned slot_shift_for(double events_per_us);
  // Number of slots of that width, as a power of two: 2^16, and as many more as it takes to reach
  // beyond 4 us.
  static constexpr unsigned slots_log2_for(unsigned slot_shift) {
    return slot_shift < 6 ? 22 - slot_shift : 16;
  }

  // Actors are numbered 0 .. actors-1. slot_shift: slot width is 2^slot_shift ps, 0..40.
  // slots_log2: number of slots is 2^slots_log2, 12..24.
  // `memory` must outlive the wheel.
  explicit EventWheel(std::uint32_t actors, unsigned slot_shift = 14, unsigned slots_log2 = 16,
                      std::pmr::memory_resource& memory = *std::pmr::new_delete_resource());
  EventWheel(const EventWheel&) = delete;
  EventWheel& operator=(const EventWheel&) = delete;

  // Sets or moves the entry of `actor`; kNever removes it. `time` must not be before the time last
  // returned by pop(). No-op when unchanged.
  void schedule(std::uint32_t actor, Picos time) {
    assert(actor < nodes_.size() && time.count >= now_);
    Node& node = nodes_[actor];
    if (node.time == time.count) return;
    if (node.prev != kNone) remove(node);
    node.time = time.count;
    const std::int64_t slot = time.count >> shift_;
    // One unsigned comparison sends both kNever and the far future to the slow path, and what the
    // window covers (slot <= cursor_) as well: the difference wraps.
    const auto ahead = static_cast<std::uint64_t>(slot) - static_cast<std::uint64_t>(cursor_) - 1;
    if (ahead < slot_count_ - 1) {
      link_into_slot(actor, node, static_cast<std::size_t>(slot) & slot_mask_);
    } else {
      place(actor, node, slot);
    }
  }

  // When the actor is due; kNever when it has no entry.
  Picos scheduled_at(std::uint32_t actor) const { return {nodes_[actor].time}; }

  // Removes the earliest entry and returns it; false when none is left.
  bool pop(Picos& time, std::uint32_t& actor) {
    while (window_begin_ != window_end_) {
      const Entry entry = window_[window_begin_++];
      Node& node = nodes_[entry.actor];
      // An entry whose actor was moved since is stale. A second copy of a live entry finds its
      // actor without an entry.
      if (node.time != entry.time || node.prev != kInWindow) continue;
      take(node);
      time = {entry.time};
      actor = entry.actor;
      return true;
    }
    return pop_slot(time, actor);
  }

  // The same, unless the earliest entry is not before `end`.
  bool pop_before(Picos end, Picos& time, std::uint32_t& actor) {
    for (; window_begin_ != window_end_; ++window_begin_) {
      const Entry entry = window_[window_begin_];
      Node& node = nodes_[entry.actor];
      if (node.time != entry.time || node.prev != kInWindow) continue;
      if (entry.time >= end.count) return false;
      ++window_begin_;
      take(node);
      time = {entry.time};
      actor = entry.actor;
      return true;
    }
    return pop_slot_before(end, time, actor);
  }

  // Removes all entries before `end` and hands them to visit(actor, time), in no order, for callers
  // that process a span of time by place. visit must not call the wheel.
  template <class Visit>
  void take_before(Picos end, Visit&& visit) {
    Picos time;
    std::uint32_t actor = 0;
    for (; window_begin_ != window_end_; ++window_begin_) {
      const Entry entry = window_[window_begin_];
      Node& node = nodes_[entry.actor];
      if (node.time != entry.time || node.prev != kInWindow) continue;
      if (entry.time >= end.count) return;
      take(node);
      visit(entry.actor, Picos{entry.time});
    }
    // Slots that end by then, whole; one that does not, as usual.
    for (;;) {
      const auto first = static_cast<std::size_t>(cursor_ + 1) & slot_mask_;
      std::size_t index = 0;
      if (!find_slot(first, index)) break;
      const std::int64_t slot =
          cursor_ + 1 + static_cast<std::int64_t>((index - first) & slot_mask_);
      if ((slot + 1) << shift_ > end.count) break;
      cursor_ = slot;
      actor = heads_[index];
      vacate(index);
      while (actor != kNone) {
        Node& node = nodes_[actor];
        const std::uint32_t next = node.next;
        time = {node.time};
        node.time = kNever.count;
        node.prev = kNone;
        visit(actor, time);
        actor = next;
      }
      now_ = slot << shift_;
      if (!heap_.empty()) migrate();
    }
    while (pop_before(end, time, actor)) visit(actor, time);
  }

  // Looks further ahead than the calls before: visit(actor, end of the slot) for the next actor
  // whose entry has been fetched meanwhile, or for none in this call. Slots come in order, actors
  // of one slot do not. False when there is nothing more within the ring. For prefetching: the
  // visited actors depend on the slots, the popped ones do not.
  template <class Visit>
  bool scout(Visit&& visit) {
    if (scout_ < cursor_) scout_ = cursor_;
    bool found = false;
    if (scouted_end_ - scouted_begin_ <= kScoutDepth) found = scout_slot();
    if (!found && scouted_end_ == scouted_begin_) return false;
    if (scouted_end_ - scouted_begin_ > kScoutDepth / 2) {
      Scouted& half = scouted_[(scouted_end_ - 1 - kScoutDepth / 2) % kScoutRing];
      if (half.actor == kNone) {
        half.actor = heads_[static_cast<std::size_t>(half.slot) & slot_mask_];
        if (half.actor != kNone) prefetch_line(&nodes_[half.actor]);
      }
    }
    if (found && scouted_end_ - scouted_begin_ <= kScoutDepth) return true;
    const Scouted next = scouted_[scouted_begin_++ % kScoutRing];
    if (next.slot <= cursor_) return true;  // drained by now
    std::uint32_t actor = next.actor;
    if (actor == kNone) actor = heads_[static_cast<std::size_t>(next.slot) & slot_mask_];
    // An actor that was moved meanwhile is not in this slot's list any more.
    if (actor == kNone || nodes_[actor].time >> shift_ != next.slot) return true;
    visit(actor, Picos{(next.slot + 1) << shift_});
    // The rest of the slot's list is walked a step a call, each entry fetched by the one before.
    const std::uint32_t behind = nodes_[actor].next;
    if (behind != kNone) {
      prefetch_line(&nodes_[behind]);
      scouted_[scouted_end_++ % kScoutRing] = {next.slot, behind};
    }
    return true;
  }

  // Starts loading what schedule(actor, time) will touch; likewise changes nothing.
  void prefetch_actor(std::uint32_t actor) const { prefetch_line(&nodes_[actor]); }
  void prefetch_slot(Picos time) const {
    prefetch_line(&heads_[static_cast<std::size_t>(time.count >> shift_) & slot_mask_]);
  }

  // Time of the earliest entry, kNever when there is none. Does not change what pop() returns.
  Picos next_time();
  // The same, and whose entry it is.
  Picos next_time(std::uint32_t& actor) {
    const Picos time = next_time();
    if (time != kNever) actor = window_[window_begin_].actor;
    return time;
  }

  std::uint32_t actors() const { return static_cast<std::uint32_t>(nodes_.size()); }

  // Adds actors; their ids follow the existing ones. Allocates.
  void grow(std::uint32_t actors);

 private:
  struct Entry {
    std::int64_t time = 0;
    std::uint32_t actor = 0;
    Entry() = default;
    Entry(std::int64_t time_, std::uint32_t actor_) : time(time_), actor(actor_) {}
    Entry(const Entry&) = default;
    // Copies member by member: one wide load of an entry that two stores have just written would
    // wait for both to reach the cache.
    Entry& operator=(const Entry& other) {
      time = other.time;
      actor = other.actor;
      return *this;
    }
    friend bool operator<(const Entry& a, const Entry& b) {
      return a.time != b.time ? a.time < b.time : a.actor < b.actor;
    }
  };
  // `prev` doubles as the place of the entry; in the heap, `next` is its index there.
  struct Node {
    std::int64_t time = kNever.count;
    std::uint32_t next = kNone;
    std::uint32_t prev = kNone;
  };
  static_assert(sizeof(Node) == 16);
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  static constexpr std::uint32_t kFirst = 0xFFFF'FFFE;  // first of its slot
  static constexpr std::uint32_t kInWindow = 0xFFFF'FFFD;
  static constexpr std::uint32_t kInHeap = 0xFFFF'FFFC;
  static constexpr std::uint32_t kMaxActors = 0xFFFF'FFF0;

  void link_into_slot(std::uint32_t actor, Node& node, std::size_t index) {
    const std::uint32_t head = heads_[index];
    node.next = head;
    node.prev = kFirst;
    heads_[index] = actor;
    occupied_[index >> 6] |= std::uint64_t{1} << (index & 63);
    summary_[index >> 12] |= std::uint64_t{1} << ((index >> 6) & 63);
    if (head != kNone) nodes_[head].prev = actor;
  }
  // Marks a slot empty, without a branch: whether its word becomes empty cannot be predicted.
  void vacate(std::size_t index) {
    heads_[index] = kNone;
    const std::size_t word = index >> 6;
    const std::uint64_t left = occupied_[word] & ~(std::uint64_t{1} << (index & 63));
    occupied_[word] = left;
    summary_[word >> 6] &= ~(std::uint64_t{left == 0 ? 1U : 0U} << (word & 63));
  }
  void take(Node& node) {
    now_ = node.time;
    node.time = kNever.count;
    node.prev = kNone;
  }
  // The next occupied slot that scout() has not seen; false when there is none within the ring.
  bool scout_slot() {
    const auto first = static_cast<std::size_t>(scout_ + 1) & slot_mask_;
    std::size_t index = 0;
    if (!find_slot(first, index)) return false;
    const std::int64_t slot = scout_ + 1 + static_cast<std::int64_t>((index - first) & slot_mask_);
    if (static_cast<std::uint64_t>(slot - cursor_) >= slot_count_) return false;  // once round
    scout_ = slot;
    prefetch_line(&heads_[index]);
    scouted_[scouted_end_++ % kScoutRing] = {slot, kNone};
    return true;
  }
  bool pop_slot(Picos& time, std::uint32_t& actor);
  bool pop_slot_before(Picos end, Picos& time, std::uint32_t& actor);
  void remove(Node& node);
  void place(std::uint32_t actor, Node& node, std::int64_t slot);
  void insert_into_window(Entry entry);
  bool next_slot(std::size_t& index);
  void drain(std::size_t index);
  bool refill();
  bool find_slot(std::size_t from, std::size_t& found) const;
  void migrate();
  void heap_push(Entry entry);
  void heap_erase(std::uint32_t index);
  void heap_set(std::uint32_t index, Entry entry);
  void heap_up(std::uint32_t index, Entry entry);
  void heap_down(std::uint32_t index, Entry entry);

  unsigned shift_;
  std::uint64_t slot_count_;
  std::size_t slot_mask_;
  // Absolute number of the slot drained last: the window covers everything up to its end. Slots
  // hold cursor_+1 .. cursor_+slot_count_-1, the heap what lies beyond.
  std::int64_t cursor_ = -1;
  std::int64_t now_ = 0;
  // Slots up to this one were seen by scout(); those seen and not visited yet, with the first actor
  // that is not (kNone: not asked so far); positions modulo 2^32.
  struct Scouted {
    std::int64_t slot = 0;
    std::uint32_t actor = kNone;
  };
  std::int64_t scout_ = -1;
  static constexpr std::uint32_t kScoutDepth = 4;
  static constexpr std::uint32_t kScoutRing = 8;
  std::array<Scouted, kScoutRing> scouted_{};
  std::uint32_t scouted_begin_ = 0;
  std::uint32_t scouted_end_ = 0;
  std::size_t window_begin_ = 0;
  std::size_t window_end_ = 0;
  std::vector<Entry> window_;
  std::pmr::vector<Node> nodes_;
  std::pmr::vector<std::uint32_t> heads_;
  std::pmr::vector<std::uint64_t> occupied_;  // one bit a slot
  std::pmr::vector<std::uint64_t> summary_;   // one bit a word of occupied_
  std::vector<Entry> heap_;
};

}  // namespace paceline
