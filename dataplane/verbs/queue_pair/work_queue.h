// The program's end of a send queue, a receive queue or a shared receive queue: where its slots
// are, and how many requests are out.
//
// The lock guards `tail` and the slots from it on. `retired` moves when a completion is polled
// (poll.cc), under the completion queue's lock; a shared receive queue has none: there the service
// says what messages have taken.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "dataplane/attach/queues.h"
#include "dataplane/verbs/completion/queue_lock.h"

namespace paceline::verbs {

struct WorkQueue {
  QueueLock lock;
  std::byte* memory = nullptr;  // a WorkQueueHeader and its slots; null: there is no such queue
  attach::WorkQueueShape shape{};
  std::uint32_t requests = 0;  // as many may be out
  std::uint32_t segments = 0;  // of a request
  std::uint32_t inline_bytes = 0;
  std::uint32_t doorbell = 0;
  bool shared = false;
  std::uint32_t tail = 0;
  std::atomic<std::uint32_t> retired{0};

  attach::WorkQueueHeader& header() { return *reinterpret_cast<attach::WorkQueueHeader*>(memory); }
  std::byte* slot(std::uint32_t index) { return memory + shape.offset(index); }

  std::uint32_t out() {
    const std::uint32_t from = shared ? header().taken.value.load(std::memory_order_acquire)
                                      : retired.load(std::memory_order_acquire);
    return tail - from;
  }
  // Whether one more fits behind `pending` that are written and not yet published.
  bool has_room(std::uint32_t pending = 0) { return out() + pending < requests; }
  // Hands `count` slots to the service; the doorbell is the caller's.
  void publish(std::uint32_t count) {
    tail += count;
    header().tail.value.store(tail, std::memory_order_release);
  }
};

}  // namespace paceline::verbs
