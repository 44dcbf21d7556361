// A receive queue is an object of its own: one queue pair owns it, or several share it. If its only
// owner fails, its requests are flushed; if it is shared, they wait for the others (vol. 1,
// 10.2.9.3).
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "dataplane/base/containers/fixed_ring.h"
#include "dataplane/transport/interface/types.h"

namespace paceline::transport {

enum class ReceiveSharing : std::uint8_t { shared, owned };

class ReceiveQueue {
 public:
  // capacity is rounded up to a power of two.
  explicit ReceiveQueue(std::size_t capacity, ReceiveSharing sharing = ReceiveSharing::shared,
                        unsigned max_segments = 1)
      : ring_(capacity),
        sharing_(sharing),
        max_segments_(max_segments),
        segments_(max_segments > 1 ? ring_.capacity() * max_segments : 0) {}

  // False when the queue is full, or the request has more segments than the queue was made for.
  bool post(const ReceiveRequest& request) {
    if (ring_.full()) return false;
    if (request.segment_count == 0) {
      ring_.push(request);
      return true;
    }
    if (request.segment_count > max_segments_) return false;
    ReceiveRequest kept = request;
    kept.length = 0;
    for (unsigned i = 0; i < request.segment_count; ++i) kept.length += request.segments[i].length;
    if (max_segments_ == 1) {
      kept.address = request.segments[0].address;
      kept.local_key = request.segments[0].key;
      kept.segment_count = 0;
    } else {
      Segment* const slot = &segments_[(ring_.tail() & (ring_.capacity() - 1)) * max_segments_];
      std::copy_n(request.segments, request.segment_count, slot);
      kept.segments = slot;
    }
    ring_.push(kept);
    return true;
  }

  // Call it between requests. Keeps queued requests; false when they do not fit. Allocates.
  bool resize(std::size_t capacity) {
    FixedRing<ReceiveRequest> ring(capacity);
    if (ring_.size() > ring.capacity()) return false;
    std::vector<Segment> segments(max_segments_ > 1 ? ring.capacity() * max_segments_ : 0);
    while (!ring_.empty()) {
      ReceiveRequest kept = ring_.front();
      ring_.pop();
      if (kept.segment_count != 0) {
        Segment* const slot = &segments[(ring.tail() & (ring.capacity() - 1)) * max_segments_];
        std::copy_n(kept.segments, kept.segment_count, slot);
        kept.segments = slot;
      }
      ring.push(kept);
    }
    ring_ = std::move(ring);
    segments_ = std::move(segments);
    return true;
  }

  // Takes the oldest request; false when empty (the responder answers RNR). A list is copied to
  // `segments`, which has room for max_segments().
  bool take(ReceiveRequest& out, Segment* segments) {
    if (ring_.empty()) return false;
    out = ring_.front();
    ring_.pop();
    if (out.segment_count != 0) {
      std::copy_n(out.segments, out.segment_count, segments);
      out.segments = segments;
    }
    return true;
  }
  unsigned max_segments() const { return max_segments_; }

  bool shared() const { return sharing_ == ReceiveSharing::shared; }
  void clear() { ring_.clear(); }
  bool empty() const { return ring_.empty(); }
  std::size_t size() const { return ring_.size(); }

 private:
  FixedRing<ReceiveRequest> ring_;
  ReceiveSharing sharing_;
  unsigned max_segments_;
  std::vector<Segment> segments_;  // max_segments_ for each place of the ring
};

}  // namespace paceline::transport
