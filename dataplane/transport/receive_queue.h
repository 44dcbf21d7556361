// A receive queue is an object of its own: one queue pair owns it, or several share it. What is
// queued when its owner fails is flushed; what is shared waits for the others (vol. 1, 10.2.9.3).
#pragma once

#include <cstddef>

#include "dataplane/base/fixed_ring.h"
#include "dataplane/transport/types.h"

namespace paceline::transport {

enum class ReceiveSharing : std::uint8_t { shared, owned };

class ReceiveQueue {
 public:
  // capacity is rounded up to a power of two.
  explicit ReceiveQueue(std::size_t capacity, ReceiveSharing sharing = ReceiveSharing::shared)
      : ring_(capacity), sharing_(sharing) {}

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

  bool shared() const { return sharing_ == ReceiveSharing::shared; }
  void clear() { ring_.clear(); }
  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }

 private:
  FixedRing<ReceiveRequest> ring_;
  ReceiveSharing sharing_;
};

}  // namespace paceline::transport
