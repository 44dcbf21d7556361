#include "control/daemon/slot_ring.h"

#include <algorithm>
#include <cassert>

namespace paceline::daemon {

namespace {

constexpr std::size_t kCellsOfLine = 8;  // rows begin at lines of the cache, as the memory does

constexpr std::size_t whole_lines(std::size_t cells) {
  return (cells + kCellsOfLine - 1) / kCellsOfLine * kCellsOfLine;
}

}  // namespace

std::size_t SlotRing::stride_of(std::size_t columns) { return whole_lines(columns); }

std::size_t SlotRing::bytes_of(std::size_t slots, std::size_t columns) {
  static_assert(sizeof(Slot) == 2 * sizeof(std::uint64_t));
  return (whole_lines(2 * slots) + (slots + kMoreRows) * stride_of(columns)) *
         sizeof(std::uint64_t);
}

SlotRing::SlotRing(Head& head, std::span<std::byte> memory, std::size_t slots, std::size_t columns,
                   bool taken_up)
    : head_(&head), slots_(slots), stride_(stride_of(columns)) {
  assert(memory.size() >= bytes_of(slots, columns) && slots > 0);
  places_ = reinterpret_cast<Slot*>(memory.data());
  cells_ = reinterpret_cast<std::uint64_t*>(memory.data()) + whole_lines(2 * slots);
  if (taken_up) return;
  head = Head{};
  std::fill_n(places_, slots_, Slot{});
  std::fill_n(row(0), stride_, 0);
}

SlotRing::Slot& SlotRing::enter(std::int64_t slot) {
  assert(slot >= head_->slot && slot >= 0);
  if (slot > head_->slot) {
    const std::int64_t oldest = slot - static_cast<std::int64_t>(slots_) + 1;
    const std::int64_t first = head_->slot < 0 ? oldest : std::max(head_->slot + 1, oldest);
    for (std::int64_t s = std::max<std::int64_t>(first, 0); s <= slot; ++s) {
      place(s).before = kMissing;
    }
    std::atomic_signal_fence(std::memory_order_release);
    head_->slot = slot;
  }
  return place(slot);
}

void SlotRing::touch(std::int64_t slot) {
  Slot& at = enter(slot);
  if (at.before != kMissing) return;
  at.row = head_->row;
  std::atomic_signal_fence(std::memory_order_release);
  at.before = head_->row;
}

SlotRing::Rows SlotRing::at(std::int64_t slot) const {
  const std::int64_t newest = head_->slot;
  if (slot < 0 || slot > newest || newest - slot >= static_cast<std::int64_t>(slots_)) return {};
  const Slot& at = place(slot);
  if (at.before == kMissing) return {};
  return {row(at.before), row(at.row)};
}

}  // namespace paceline::daemon
