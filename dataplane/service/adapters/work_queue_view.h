// One work queue as the service sees it. The program writes its memory; the service copies each
// slot once and trusts only the copy.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "dataplane/attach/queues.h"
#include "dataplane/service/adapters/copy_out.h"
#include "dataplane/transport/interface/types.h"

namespace paceline::service {

class WorkQueueView {
 public:
  WorkQueueView() = default;
  // `memory` has the bytes of `shape` and outlives the view.
  WorkQueueView(std::byte* memory, attach::WorkQueueShape shape) : memory_(memory), shape_(shape) {}

  // Slots that wait to be copied out. More than there are slots: the program has corrupted its
  // index.
  std::uint32_t waiting() const {
    return header().tail.value.load(std::memory_order_acquire) - next_;
  }
  bool corrupted(std::uint32_t waiting) const { return waiting > shape_.slots; }
  std::uint32_t slots() const { return shape_.slots; }
  std::uint32_t next() const { return next_; }
  const std::byte* slot(std::uint32_t index) const { return memory_ + shape_.offset(index); }
  std::uint32_t body_bytes(std::size_t head) const {
    return shape_.stride - static_cast<std::uint32_t>(head);
  }
  void advance() { ++next_; }
  // Goes on in other memory, in which nothing waits.
  void move_to(std::byte* memory, attach::WorkQueueShape shape) {
    memory_ = memory;
    shape_ = shape;
    header().tail.value.store(next_, std::memory_order_relaxed);
  }
  // Skips all slots that are there.
  void skip_all() {
    next_ = header().tail.value.load(std::memory_order_acquire);
    tell_taken(next_);
  }
  // Publishes to the program how far the queue was read.
  void tell_taken(std::uint32_t index) {
    header().taken.value.store(index, std::memory_order_release);
  }
  // The program's name for the request in a slot that has not been given back: only its own.
  std::uint64_t wr_id(std::uint64_t index) const {
    std::uint64_t id = 0;
    copy_out(&id, slot(static_cast<std::uint32_t>(index)), sizeof(id));
    return id;
  }

 private:
  attach::WorkQueueHeader& header() const {
    return *reinterpret_cast<attach::WorkQueueHeader*>(memory_);
  }

  std::byte* memory_ = nullptr;
  attach::WorkQueueShape shape_{};
  std::uint32_t next_ = 0;
};

// The segment list of a request, copied out. Segments without bytes need no key and are left out.
struct SegmentList {
  std::array<transport::Segment, transport::kMaxSegments> segments{};
  unsigned count = 0;

  // `count` of shared segments (at most kMaxSegments) behind `from`.
  void take(const std::byte* from, unsigned shared) {
    std::array<attach::SharedSegment, transport::kMaxSegments> raw;
    copy_out(raw.data(), from, shared * sizeof(attach::SharedSegment));
    count = 0;
    for (unsigned i = 0; i < shared; ++i) {
      if (raw[i].length == 0) continue;
      segments[count++] = {raw[i].address, raw[i].length, raw[i].key};
    }
  }
};

}  // namespace paceline::service
