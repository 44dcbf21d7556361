// A FIFO of fixed capacity on one thread: a power of two of slots, allocated once, and positions
// that run on for ever. An element keeps its position until it is popped, so what refers to it (a
// packet sequence number, a cursor) can find it again.
#pragma once

#include <bit>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace paceline {

template <class T>
class FixedRing {
 public:
  // Holds at least `capacity` elements: the next power of two (1 for 0). The only allocation.
  explicit FixedRing(std::size_t capacity)
      : mask_(static_cast<std::uint32_t>(std::bit_ceil(capacity == 0 ? 1 : capacity) - 1)),
        slots_(std::make_unique<T[]>(std::size_t{mask_} + 1)) {}

  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ > mask_; }
  std::uint32_t size() const { return tail_ - head_; }
  std::uint32_t capacity() const { return mask_ + 1; }

  // head() is the oldest element, tail() one past the newest; both modulo 2^32.
  std::uint32_t head() const { return head_; }
  std::uint32_t tail() const { return tail_; }
  T& at(std::uint32_t position) { return slots_[position & mask_]; }
  const T& at(std::uint32_t position) const { return slots_[position & mask_]; }
  T& front() { return slots_[head_ & mask_]; }
  const T& front() const { return slots_[head_ & mask_]; }

  // Requires !full().
  void push(const T& value) {
    assert(!full());
    slots_[tail_++ & mask_] = value;
  }
  // Requires !empty().
  void pop() {
    assert(!empty());
    ++head_;
  }
  void clear() { head_ = tail_; }

 private:
  // Positions first: a caller that only asks whether it is empty reads one cache line.
  std::uint32_t head_ = 0;
  std::uint32_t tail_ = 0;
  std::uint32_t mask_;
  std::unique_ptr<T[]> slots_;
};

}  // namespace paceline
