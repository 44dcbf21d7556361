// A receive queue is an object of its own: one queue pair may own it, or several share it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataplane/transport/types.h"

namespace paceline::transport {

class ReceiveQueue {
 public:
  // capacity is rounded up to a power of two.
  explicit ReceiveQueue(std::size_t capacity) {
    std::size_t size = 1;
    while (size < capacity) size *= 2;
    ring_.resize(size);
    mask_ = size - 1;
  }

  bool post(const ReceiveRequest& request) {
    if (tail_ - head_ > mask_) return false;
    ring_[tail_++ & mask_] = request;
    return true;
  }

  // Takes the oldest request; false when empty (the responder answers RNR).
  bool take(ReceiveRequest& out) {
    if (head_ == tail_) return false;
    out = ring_[head_++ & mask_];
    return true;
  }

  bool empty() const { return head_ == tail_; }
  std::size_t size() const { return tail_ - head_; }

 private:
  std::vector<ReceiveRequest> ring_;
  std::size_t mask_ = 0;
  std::size_t head_ = 0;
  std::size_t tail_ = 0;
};

}  // namespace paceline::transport
