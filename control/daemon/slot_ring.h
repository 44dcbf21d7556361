// A ring of slots of time. A slot does not hold what grew in it but two rows of totals: the last
// that was seen in it, and the one in force before its first look; what grew is the difference,
// taken when somebody asks. So a look costs one row, and one that found nothing new not even that:
// its slot names the row of the slots before. Pure, and over memory that others bring.
//
// Whoever writes may be killed at any point: a row is there before anything names it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

namespace paceline::daemon {

class SlotRing {
 public:
  // Rows are counted from the first ever; 0 is all zeros.
  struct Head {
    std::int64_t slot = -1;  // newest, counted since 1970; -1: none
    std::uint64_t row = 0;   // written last
  };
  struct Slot {
    std::uint64_t before = kMissing;  // row in force when it was first looked at
    std::uint64_t row = 0;            // and when it was last
  };
  // Of a slot with a look: cells of its two rows, the same where nothing has changed.
  struct Rows {
    const std::uint64_t* before = nullptr;
    const std::uint64_t* last = nullptr;
  };
  // What a row that is about to be written follows in its slot.
  struct Past {
    const std::uint64_t* row = nullptr;  // cells of the slot's last row; none: its first look
    bool own = false;                    // they are the slot's, and will be written over
  };

  static std::size_t bytes_of(std::size_t slots, std::size_t columns);

  SlotRing() = default;
  // `head` and `memory` (bytes_of() of it, aligned to 8) outlive the ring. Begins anew unless
  // `taken_up`: then they are as another ring of these sizes left them.
  SlotRing(Head& head, std::span<std::byte> memory, std::size_t slots, std::size_t columns,
           bool taken_up);

  std::size_t slots() const { return slots_; }
  std::int64_t newest() const { return head_->slot; }
  std::uint64_t rows_written() const { return head_->row; }
  // Cells of the row in force: the last that was written, for whichever slot.
  const std::uint64_t* last() const { return row(head_->row); }

  // A look at a slot that is not before newest(), in which nothing has changed since last().
  void touch(std::int64_t slot);
  // The same with a new row: fill(cells, past) writes all columns. A slot has one row at most.
  template <class Fill>
  void put(std::int64_t slot, Fill&& fill) {
    Slot& place = enter(slot);
    const bool first = place.before == kMissing;
    const bool own = !first && place.row != place.before;
    const std::uint64_t before = head_->row;
    const std::uint64_t number = own ? place.row : before + 1;
    fill(row(number), Past{first ? nullptr : row(place.row), own});
    std::atomic_signal_fence(std::memory_order_release);
    head_->row = number;
    std::atomic_signal_fence(std::memory_order_release);
    place.row = number;
    if (first) place.before = before;
  }
  // No slot is known any more, and what comes grows from a row that fill(cells) writes.
  template <class Fill>
  void begin_again(Fill&& fill) {
    head_->slot = -1;
    fill(row(head_->row + 1));
    std::atomic_signal_fence(std::memory_order_release);
    ++head_->row;
  }

  // `last` is null: nobody looked, or it is not in the ring.
  Rows at(std::int64_t slot) const;

 private:
  static constexpr std::uint64_t kMissing = ~std::uint64_t{0};
  // Slots in the ring name one row each, and the oldest the one before it; another is being
  // written.
  static constexpr std::size_t kMoreRows = 2;
  static std::size_t stride_of(std::size_t columns);

  Slot& place(std::int64_t slot) const { return places_[static_cast<std::size_t>(slot) % slots_]; }
  // Whatever number memory from elsewhere may claim, the cells are in the ring.
  std::uint64_t* row(std::uint64_t number) const {
    return cells_ + number % (slots_ + kMoreRows) * stride_;
  }
  Slot& enter(std::int64_t slot);

  Head* head_ = nullptr;
  Slot* places_ = nullptr;
  std::uint64_t* cells_ = nullptr;
  std::size_t slots_ = 0;
  std::size_t stride_ = 0;  // cells from a row to the next
};

}  // namespace paceline::daemon
