// A receive queue is an object of its own: one queue pair may own it, or several share it.
#pragma once

#include <cstddef>

#include "dataplane/base/fixed_ring.h"
#include "dataplane/transport/types.h"

namespace paceline::transport {

class ReceiveQueue {
 public:
  // capacity is rounded up to a power of two.
  explicit ReceiveQueue(std::size_t capacity) : ring_(capacity) {}

  bool post(const ReceiveRequest& request) {
    if (ring_.full()) return false;
    ring_.push(request);
    return true;
  }

  // Takes the oldest request; false when empty (the responder answers RNR).
  bool take(ReceiveRequest& out) {
    if (ring_.empty()) return false;
    out = ring_.front();
    ring_.pop();
    return true;
  }

  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }

 private:
  FixedRing<ReceiveRequest> ring_;
};

}  // namespace paceline::transport
