// Posting under paceline exec --fault or --reorder, in place of WorkQueue::publish and the
// doorbell.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/verbs/queue_pair/queue_pair.h"

namespace paceline::verbs {

class WatchedPost {
 public:
  explicit WatchedPost(QueuePair& pair) : pair_(pair) {}
  // Under the send queue's lock: `count` slots behind its tail.
  void publish(std::uint32_t count) noexcept;
  // Without it, afterwards.
  void ring() noexcept;

 private:
  QueuePair& pair_;
  std::uint64_t hold_micros_ = 0;
  std::vector<Injected> injected_;
};

}  // namespace paceline::verbs
