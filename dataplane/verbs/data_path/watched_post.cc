#include "dataplane/verbs/data_path/watched_post.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>

#include "dataplane/verbs/abi/results.h"
#include "dataplane/verbs/data_path/send_slot.h"
#include "dataplane/verbs/device/context.h"

namespace paceline::verbs {

namespace {

// Whether one of the segments behind a slot's header has that address.
bool covers(const std::byte* segments, std::size_t count, std::uint64_t address) {
  for (std::size_t i = 0; i < count; ++i) {
    attach::SharedSegment s;
    std::memcpy(&s, segments + i * sizeof(s), sizeof(s));
    if (address >= s.address && address - s.address < s.length) return true;
  }
  return false;
}

std::string request_named(const char* what, std::uint64_t wr_id) {
  return std::string(what) + " wr_id " + std::to_string(wr_id);
}

// Names the program's own request that a placement belongs to, or else the peer's.
std::string request_of(QueuePair& pair, const attach::OrderWindow& window) {
  WorkQueue& queue = window.from_peer != 0 ? pair.receive : pair.send;
  const std::uint32_t end = queue.memory == nullptr ? 0 : queue.tail;
  for (std::uint32_t i = queue.memory == nullptr ? 0 : queue.retired.load(); i != end; ++i) {
    const std::byte* const at = queue.slot(i);
    if (window.from_peer != 0) {
      const auto& slot = *reinterpret_cast<const attach::ReceiveSlot*>(at);
      if (covers(at + sizeof(slot), slot.segments, window.address)) {
        return request_named("the receive request", slot.wr_id);
      }
    } else {
      const auto& slot = *reinterpret_cast<const attach::SendSlot*>(at);
      if (slot.inline_bytes == 0 && covers(at + sizeof(slot), slot.segments, window.address)) {
        return request_named("the request", slot.wr_id);
      }
    }
  }
  return window.from_peer != 0 ? "a WRITE of the peer" : "a request";
}

void look_at_order(Context& context) {
  attach::OrderWindow window;
  if (!context.order->acted(window)) return;
  std::string request = "a request";
  {
    const std::lock_guard hold(context.objects);
    const auto pair =
        std::find_if(context.queue_pairs.begin(), context.queue_pairs.end(),
                     [&](QueuePair* p) { return p->base().qp_num == window.qp_number; });
    if (pair != context.queue_pairs.end()) request = request_of(**pair, window);
  }
  context.order->note(window, request);
}

// The time of a slow request is over: requests behind it go as far as the next slow one.
std::uint64_t go_on(QueuePair& pair) {
  const std::uint64_t next = pair.faults->release(pair.send.header().tail);
  pair.context->ring(pair.send.doorbell);
  return next;
}

}  // namespace

void WatchedPost::publish(std::uint32_t count) noexcept {
  if (pair_.faults == nullptr) {
    pair_.send.publish(count);
    return;
  }
  guarded(0, [&] {
    const std::uint32_t first = pair_.send.tail;
    for (std::uint32_t i = first; i != first + count; ++i) {
      pair_.faults->inject(send_slot(pair_.send, i), i, injected_);
    }
    return 0;
  });
  pair_.send.tail += count;
  hold_micros_ = pair_.faults->publish(pair_.send.tail, pair_.send.header().tail);
}

void WatchedPost::ring() noexcept {
  guarded(0, [&] {
    Context& context = *pair_.context;
    if (context.order != nullptr) look_at_order(context);
    if (!injected_.empty()) context.faults->carry_out(injected_, pair_.base().qp_num);
    if (hold_micros_ != 0) {
      context.faults->alarm().after(hold_micros_, &pair_, [pair = &pair_] { return go_on(*pair); });
    }
    return 0;
  });
  pair_.context->ring(pair_.send.doorbell);
}

}  // namespace paceline::verbs
