// Receive queues between a program and an engine: a queue pair's own, and shared ones. For the
// worker's thread.
#pragma once

#include <cstdint>
#include <utility>

#include "dataplane/attach/queues.h"
#include "dataplane/base/units.h"
#include "dataplane/service/adapters/work_queue_view.h"
#include "dataplane/transport/engine.h"
#include "dataplane/transport/interface/receive_queue.h"

namespace paceline::service {

// The receive queue of one queue pair. The engine knows a request by its index.
class OwnReceives {
 public:
  OwnReceives(WorkQueueView view, std::uint32_t max_segments)
      : view_(view), queue_(view.slots(), transport::ReceiveSharing::owned, max_segments) {}

  transport::ReceiveQueue& queue() { return queue_; }
  const WorkQueueView& view() const { return view_; }

  struct Result {
    bool any = false;     // the engine was given something
    bool more = false;    // waits until the queue pair may take it
    bool broken = false;  // the program wrote something that makes no sense
  };
  Result pump(Picos now, transport::Engine& engine, std::uint32_t qp_number);
  void forget() { view_.skip_all(); }

 private:
  WorkQueueView view_;
  transport::ReceiveQueue queue_;
};

// A shared receive queue: the engine knows a request by the program's own number.
class SharedReceives {
 public:
  SharedReceives(std::uint32_t handle, WorkQueueView view, std::uint32_t max_segments)
      : handle_(handle),
        view_(view),
        queue_(view.slots(), transport::ReceiveSharing::shared, max_segments) {}

  transport::ReceiveQueue& queue() { return queue_; }
  std::uint32_t handle() const { return handle_; }
  // For XRC: the number by which requests name it.
  void set_number(std::uint32_t number) { number_ = number; }
  std::uint32_t number() const { return number_; }

  // Takes what the program has posted; true if there was anything. A queue that makes no sense is
  // not read again (broken()).
  bool pump();
  // Tells the program how many requests messages have taken. Called before the completion of such a
  // message becomes visible: a program that has polled it finds the room.
  void tell_taken() {
    const std::uint32_t taken = view_.next() - static_cast<std::uint32_t>(queue_.size());
    if (taken != told_) view_.tell_taken(told_ = taken);
  }
  // Likewise for messages without a completion. True once when fewer requests than the limit are
  // left: the limit is then disarmed (vol. 1, 10.2.9.2).
  bool settle();
  // Takes what is posted, and continues in other memory. False, with nothing changed, if waiting
  // requests or the limit do not fit, or if the queue is broken. Allocates.
  bool resize(std::byte* memory, attach::WorkQueueShape shape);
  void arm(std::uint32_t limit) { limit_ = limit; }
  std::uint32_t limit() const { return limit_; }
  bool broken() const { return broken_; }
  bool report_broken() { return broken_ && !std::exchange(reported_, true); }

 private:
  std::uint32_t handle_;
  std::uint32_t number_ = 0;
  WorkQueueView view_;
  transport::ReceiveQueue queue_;
  std::uint32_t limit_ = 0;
  std::uint32_t told_ = 0;
  bool broken_ = false;
  bool reported_ = false;
};

}  // namespace paceline::service
