// A completion queue: a fixed ring that the engine fills and the application drains, both on the
// engine's thread. An overflow is remembered and nothing is overwritten.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/transport/types.h"

namespace paceline::transport {

class CompletionQueue {
 public:
  // capacity is rounded up to a power of two.
  explicit CompletionQueue(std::size_t capacity) {
    std::size_t size = 1;
    while (size < capacity) size *= 2;
    ring_.resize(size);
    mask_ = size - 1;
  }

  // False when full: the entry is lost and the queue is in error (vol. 1, 11.2.6).
  bool push(const Completion& completion) {
    if (tail_ - head_ > mask_) {
      overflowed_ = true;
      return false;
    }
    ring_[tail_++ & mask_] = completion;
    return true;
  }

  std::size_t poll(std::span<Completion> out) {
    std::size_t n = 0;
    while (n < out.size() && head_ != tail_) out[n++] = ring_[head_++ & mask_];
    return n;
  }

  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }
  std::size_t capacity() const { return mask_ + 1; }
  bool overflowed() const { return overflowed_; }

 private:
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
  std::size_t mask_ = 0;
  std::vector<Completion> ring_;
  bool overflowed_ = false;
};

}  // namespace paceline::transport
