// Asynchronous events, which concern objects rather than work requests (InfiniBand vol. 1, 11.6.3):
// a list that the owner of the engine polls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "dataplane/base/containers/fixed_ring.h"

namespace paceline::transport {

class CompletionQueue;

enum class AsyncEventKind : std::uint8_t {
  comm_established,  // the first packet arrived while the queue pair was in RTR
  sq_drained,        // SQD is reached: all requests that were begun are complete
  last_wqe_reached,  // in error, and no receive of a shared queue will complete for it any more
  qp_request_error,  // a peer's request was invalid: the queue pair is in error
  qp_access_error,   // a peer's request violated rights: the queue pair is in error
  qp_fatal,          // the queue pair is in error for another reason than its work requests
  cq_error,          // overrun: the completion queue and its queue pairs are in error
};

struct AsyncEvent {
  AsyncEventKind kind = AsyncEventKind::qp_fatal;
  std::uint32_t qp_number = 0;             // 0: not about a queue pair
  const CompletionQueue* queue = nullptr;  // cq_error
};

class AsyncEventList {
 public:
  static constexpr std::size_t kCapacity = 64;

  // The oldest events are kept; an owner that does not read them need not know all of them.
  void push(const AsyncEvent& event) {
    if (ring_.full()) {
      ++lost_;
    } else {
      ring_.push(event);
    }
  }
  std::size_t poll(std::span<AsyncEvent> out) {
    std::size_t n = 0;
    for (; n < out.size() && !ring_.empty(); ring_.pop()) out[n++] = ring_.front();
    return n;
  }
  std::uint64_t lost() const { return lost_; }

 private:
  FixedRing<AsyncEvent> ring_{kCapacity};
  std::uint64_t lost_ = 0;
};

}  // namespace paceline::transport
