#include "dataplane/service/adapters/receive_adapter.h"

#include <algorithm>

namespace paceline::service {

namespace {

// Reads a receive request that was copied out. False if it makes no sense.
bool take_receive(const WorkQueueView& view, std::uint32_t max_segments, SegmentList& list,
                  std::uint64_t& wr_id) {
  const std::byte* const at = view.slot(view.next());
  attach::ReceiveSlot slot;
  copy_out(&slot, at, sizeof(slot));
  if (slot.segments > max_segments) return false;
  list.take(at + sizeof(slot), slot.segments);
  wr_id = slot.wr_id;
  return true;
}

transport::ReceiveRequest request_of(const SegmentList& list, std::uint64_t id) {
  transport::ReceiveRequest request;
  request.wr_id = id;
  if (list.count == 1) {
    request.address = list.segments[0].address;
    request.length = list.segments[0].length;
    request.local_key = list.segments[0].key;
  } else if (list.count > 1) {
    request.segments = list.segments.data();
    request.segment_count = static_cast<std::uint8_t>(list.count);
  }
  return request;
}

}  // namespace

OwnReceives::Result OwnReceives::pump(Picos now, transport::Engine& engine,
                                      std::uint32_t qp_number) {
  std::uint32_t waiting = view_.waiting();
  if (waiting == 0) return {};
  if (view_.corrupted(waiting)) return {false, false, true};
  const std::uint32_t first = view_.next();
  for (; waiting != 0; --waiting) {
    SegmentList list;
    std::uint64_t wr_id = 0;
    if (!take_receive(view_, queue_.max_segments(), list, wr_id)) {
      return {view_.next() != first, false, true};
    }
    if (!engine.post_receive(now, qp_number, request_of(list, view_.next()))) break;
    view_.advance();
  }
  view_.tell_taken(view_.next());
  return {view_.next() != first, waiting != 0, false};
}

bool SharedReceives::pump() {
  if (broken_) return false;
  std::uint32_t waiting = view_.waiting();
  if (waiting == 0) return false;
  broken_ = view_.corrupted(waiting);
  for (; waiting != 0 && !broken_; --waiting) {
    SegmentList list;
    std::uint64_t wr_id = 0;
    if (!take_receive(view_, queue_.max_segments(), list, wr_id)) {
      broken_ = true;
      break;
    }
    if (!queue_.post(request_of(list, wr_id))) break;
    view_.advance();
  }
  return true;
}

bool SharedReceives::resize(std::byte* memory, attach::WorkQueueShape shape) {
  pump();
  if (broken_ || view_.waiting() != 0 || limit_ > shape.slots || !queue_.resize(shape.slots)) {
    return false;
  }
  view_.move_to(memory, shape);
  told_ = view_.next() - static_cast<std::uint32_t>(queue_.size());
  view_.tell_taken(told_);
  return true;
}

bool SharedReceives::settle() {
  tell_taken();
  const auto queued = static_cast<std::uint32_t>(queue_.size());
  if (limit_ == 0 || broken_ || queued + view_.waiting() >= limit_) return false;
  limit_ = 0;
  return true;
}

}  // namespace paceline::service
