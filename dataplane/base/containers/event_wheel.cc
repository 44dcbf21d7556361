#include "dataplane/base/containers/event_wheel.h"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace paceline {

namespace {
constexpr std::uint32_t kHeapArity = 4;
}

unsigned EventWheel::slot_shift_for(double events_per_us) {
  unsigned shift = 18;
  // 2^shift ps x events_per_us / 10^6 ps <= 2 entries.
  while (shift > 4 && static_cast<double>(1U << shift) * events_per_us > 2e6) --shift;
  return shift;
}

EventWheel::EventWheel(std::uint32_t actors, unsigned slot_shift, unsigned slots_log2,
                       std::pmr::memory_resource& memory)
    : shift_(slot_shift), nodes_(&memory), heads_(&memory), occupied_(&memory), summary_(&memory) {
  if (slot_shift > 40 || slots_log2 < 12 || slots_log2 > 24 || actors > kMaxActors) {
    throw std::invalid_argument("EventWheel: slot_shift 0..40, slots_log2 12..24");
  }
  const std::size_t slots = std::size_t{1} << slots_log2;
  slot_count_ = slots;
  slot_mask_ = slots - 1;
  nodes_.resize(actors);
  heads_.assign(slots, kNone);
  occupied_.assign(slots / 64, 0);
  summary_.assign(slots / 4096, 0);
  window_.resize(64);
}

void EventWheel::grow(std::uint32_t actors) {
  if (actors > kMaxActors - nodes_.size()) throw std::length_error("EventWheel: too many actors");
  nodes_.resize(nodes_.size() + actors);
}

Picos EventWheel::next_time() {
  for (;;) {
    while (window_begin_ != window_end_) {
      const Entry& entry = window_[window_begin_];
      const Node& node = nodes_[entry.actor];
      if (node.time == entry.time && node.prev == kInWindow) return {entry.time};
      ++window_begin_;
    }
    if (!refill()) return kNever;
  }
}

void EventWheel::remove(Node& node) {
  if (node.prev == kInWindow) {
    // The copy in the window stays and is found stale.
  } else if (node.prev == kInHeap) {
    heap_erase(node.next);
  } else {
    if (node.next != kNone) nodes_[node.next].prev = node.prev;
    if (node.prev != kFirst) {
      nodes_[node.prev].next = node.next;
    } else {
      const std::size_t index = static_cast<std::size_t>(node.time >> shift_) & slot_mask_;
      if (node.next == kNone) {
        vacate(index);
      } else {
        heads_[index] = node.next;
      }
    }
  }
  node.prev = kNone;
}

void EventWheel::place(std::uint32_t actor, Node& node, std::int64_t slot) {
  if (node.time == kNever.count) return;
  if (slot <= cursor_) {
    node.prev = kInWindow;
    insert_into_window({node.time, actor});
  } else {
    node.prev = kInHeap;
    heap_push({node.time, actor});
  }
}

void EventWheel::insert_into_window(Entry entry) {
  if (window_begin_ == window_end_) {
    window_begin_ = window_end_ = 0;
  } else if (window_begin_ > 0 && entry < window_[window_begin_]) {
    window_[--window_begin_] = entry;
    return;
  }
  if (window_end_ == window_.size()) {
    if (window_begin_ > 0) {
      std::copy(window_.begin() + static_cast<std::ptrdiff_t>(window_begin_), window_.end(),
                window_.begin());
      window_end_ -= window_begin_;
      window_begin_ = 0;
    } else {
      window_.resize(2 * window_.size());
    }
  }
  std::size_t at = window_end_++;
  for (; at > window_begin_ && entry < window_[at - 1]; --at) window_[at] = window_[at - 1];
  window_[at] = entry;
}

// Finds the earliest occupied slot and moves the cursor there. All heap entries lie beyond the ring
// as seen from the old cursor, so none is earlier.
bool EventWheel::next_slot(std::size_t& index) {
  const auto first = static_cast<std::size_t>(cursor_ + 1) & slot_mask_;
  if (!find_slot(first, index)) [[unlikely]] {
    if (heap_.empty()) return false;
    cursor_ = (heap_.front().time >> shift_) - 1;
    migrate();
    return next_slot(index);
  }
  cursor_ += 1 + static_cast<std::int64_t>((index - first) & slot_mask_);
  return true;
}

// The window is empty. A slot with a single entry, the usual case, does not go through it.
bool EventWheel::pop_slot(Picos& time, std::uint32_t& actor) {
  std::size_t index = 0;
  if (!next_slot(index)) return false;
  actor = heads_[index];
  Node& node = nodes_[actor];
  if (node.next == kNone) {
    vacate(index);
    time = {node.time};
    take(node);
    if (!heap_.empty()) migrate();
    return true;
  }
  drain(index);
  return pop(time, actor);
}

// The window is empty. A slot that begins at `end` or later stays as it is.
bool EventWheel::pop_slot_before(Picos end, Picos& time, std::uint32_t& actor) {
  const auto first = static_cast<std::size_t>(cursor_ + 1) & slot_mask_;
  std::size_t index = 0;
  if (find_slot(first, index)) [[likely]] {
    const std::int64_t slot = cursor_ + 1 + static_cast<std::int64_t>((index - first) & slot_mask_);
    if (slot > (end.count - 1) >> shift_) return false;
    Node& node = nodes_[heads_[index]];
    if (node.next == kNone && node.time < end.count) {
      cursor_ = slot;
      actor = heads_[index];
      vacate(index);
      time = {node.time};
      take(node);
      if (!heap_.empty()) migrate();
      return true;
    }
    cursor_ = slot;
    drain(index);
  } else if (heap_.empty() || heap_.front().time >= end.count || !refill()) {
    return false;
  }
  return pop_before(end, time, actor);
}

bool EventWheel::refill() {
  std::size_t index = 0;
  if (!next_slot(index)) return false;
  drain(index);
  return true;
}

// Moves a slot's entries, sorted, into the empty window; heap entries that the advance of the
// cursor brings into reach move to their slots.
void EventWheel::drain(std::size_t index) {
  std::uint32_t actor = heads_[index];
  vacate(index);
  // Locals, because the compiler must take a store to an entry for a store to a member.
  Node* const nodes = nodes_.data();
  Entry* entries = window_.data();
  std::size_t room = window_.size();
  std::size_t count = 0;
  while (actor != kNone) {
    Node& node = nodes[actor];
    if (count == room) {
      window_.resize(2 * room);
      entries = window_.data();
      room = window_.size();
    }
    entries[count++] = {node.time, actor};
    node.prev = kInWindow;
    actor = node.next;
  }
  if (count <= 8) {
    for (std::size_t i = 1; i < count; ++i) {
      const Entry entry = entries[i];
      std::size_t at = i;
      for (; at > 0 && entry < entries[at - 1]; --at) entries[at] = entries[at - 1];
      entries[at] = entry;
    }
  } else {
    std::sort(entries, entries + count);
  }
  window_begin_ = 0;
  window_end_ = count;
  if (!heap_.empty()) migrate();
}

// First occupied slot at or after `from`, going round.
bool EventWheel::find_slot(std::size_t from, std::size_t& found) const {
  const std::size_t word = from >> 6;
  const std::uint64_t here = occupied_[word] & (~std::uint64_t{0} << (from & 63));
  if (here != 0) {
    found = word << 6 | static_cast<std::size_t>(std::countr_zero(here));
    return true;
  }
  std::size_t group = word >> 6;
  // Words after `word` of its group first (two shifts: the sum may be 64), then group after group
  // until the first one again, now with all its words.
  std::uint64_t words = summary_[group] & (~std::uint64_t{0} << (word & 63) << 1);
  for (std::size_t i = 0; i <= summary_.size(); ++i) {
    if (words != 0) {
      const std::size_t w = group << 6 | static_cast<std::size_t>(std::countr_zero(words));
      found = w << 6 | static_cast<std::size_t>(std::countr_zero(occupied_[w]));
      return true;
    }
    group = group + 1 == summary_.size() ? 0 : group + 1;
    words = summary_[group];
  }
  return false;
}

// Moves heap entries that the ring reaches into their slots.
void EventWheel::migrate() {
  while (!heap_.empty()) {
    const Entry entry = heap_.front();
    const std::int64_t slot = entry.time >> shift_;
    if (static_cast<std::uint64_t>(slot - cursor_) >= slot_count_) return;
    heap_erase(0);
    link_into_slot(entry.actor, nodes_[entry.actor], static_cast<std::size_t>(slot) & slot_mask_);
  }
}

void EventWheel::heap_set(std::uint32_t index, Entry entry) {
  heap_[index] = entry;
  nodes_[entry.actor].next = index;
}

void EventWheel::heap_push(Entry entry) {
  heap_.push_back(entry);
  heap_up(static_cast<std::uint32_t>(heap_.size() - 1), entry);
}

void EventWheel::heap_erase(std::uint32_t index) {
  const Entry last = heap_.back();
  heap_.pop_back();
  if (index == heap_.size()) return;
  if (index > 0 && last < heap_[(index - 1) / kHeapArity]) {
    heap_up(index, last);
  } else {
    heap_down(index, last);
  }
}

void EventWheel::heap_up(std::uint32_t index, Entry entry) {
  while (index > 0) {
    const std::uint32_t parent = (index - 1) / kHeapArity;
    if (!(entry < heap_[parent])) break;
    heap_set(index, heap_[parent]);
    index = parent;
  }
  heap_set(index, entry);
}

void EventWheel::heap_down(std::uint32_t index, Entry entry) {
  const auto size = static_cast<std::uint32_t>(heap_.size());
  for (;;) {
    const std::uint64_t first = std::uint64_t{index} * kHeapArity + 1;
    if (first >= size) break;
    auto best = static_cast<std::uint32_t>(first);
    const auto end = static_cast<std::uint32_t>(std::min<std::uint64_t>(first + kHeapArity, size));
    for (std::uint32_t child = best + 1; child < end; ++child) {
      if (heap_[child] < heap_[best]) best = child;
    }
    if (!(heap_[best] < entry)) break;
    heap_set(index, heap_[best]);
    index = best;
  }
  heap_set(index, entry);
}

}  // namespace paceline
