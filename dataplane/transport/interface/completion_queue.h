// A completion queue: a fixed ring that the engine fills and the application drains, both on the
// engine's thread. An overflow is remembered and nothing is overwritten.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/transport/interface/types.h"

namespace paceline::transport {

class CompletionQueue {
 public:
  // capacity is rounded up to a power of two.
  explicit CompletionQueue(std::size_t capacity) : ring_(capacity) {}

  // False when full: the entry is lost and the queue is in error (vol. 1, 11.2.6).
  bool push(const Completion& completion) {
    if (ring_.full()) {
      overflowed_ = true;
      return false;
    }
    ring_.push(completion);
    return true;
  }

  std::size_t poll(std::span<Completion> out) {
    std::size_t n = 0;
    for (; n < out.size() && !ring_.empty(); ring_.pop()) out[n++] = ring_.front();
    return n;
  }

  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }
  std::size_t capacity() const { return ring_.capacity(); }
  void overrun() { overflowed_ = true; }
  bool overflowed() const { return overflowed_; }
  // True once after an overflow: raise the event.
  bool report_error() { return overflowed_ && !std::exchange(reported_, true); }

 private:
  FixedRing<Completion> ring_;
  bool overflowed_ = false;
  bool reported_ = false;
};

}  // namespace paceline::transport
