// Requests of queue-pair code to congestion control and the scheduler. Queue-pair code calls
// neither: it notes its requests here. When it has returned, its caller has them performed, in
// order (CongestionManager::perform). So algorithms and the scheduler never see a queue pair in the
// middle of a change.
#pragma once

#include <cstdint>
#include <memory>

#include "cc/interface/event.h"
#include "dataplane/base/protocol/int_stack.h"

namespace paceline {

struct Packet;

namespace transport {

struct QueuePair;

struct Action {
  enum class Kind : std::uint8_t {
    settle,             // the queue pair's turns follow from whether it has work
    settle_or_idle,     // the same; if no work is left, the algorithm is told
    stop,               // no work is left: no turn any more
    resume,             // if there is work: a turn, and room in the window is looked for
    resume_and_report,  // the same, if no event of its own says that there is work again
    dropped,            // the work is gone: no turn, and the context is looked at again
    deliver,            // an event for the context's algorithm
    idle,               // the algorithm is told if the context has nothing left to send
    send_in_line,       // a packet, behind the data that was built before (PortBacklog)
  };
  Kind kind{};
  std::uint32_t context = 0;
  QueuePair* qp = nullptr;
  Packet* packet = nullptr;
  cc::Event event;   // deliver
  IntStack records;  // deliver: what event.int_stack points to, if to anything
};

class Actions {
 public:
  // `any` is true while there are some; it lies where the performer looks at each packet.
  explicit Actions(bool& any) : any_(any), list_(std::make_unique<Action[]>(kUsual)) {}
  Actions(const Actions&) = delete;
  Actions& operator=(const Actions&) = delete;

  void settle(QueuePair& qp) { add(Action::Kind::settle, qp); }
  void settle_or_idle(QueuePair& qp) { add(Action::Kind::settle_or_idle, qp); }
  void stop(QueuePair& qp) { add(Action::Kind::stop, qp); }
  void resume(QueuePair& qp) { add(Action::Kind::resume, qp); }
  void resume_and_report(QueuePair& qp) { add(Action::Kind::resume_and_report, qp); }
  void dropped(QueuePair& qp) { add(Action::Kind::dropped, qp); }
  // Bytes of the context have left the network: waiting queue pairs may continue, after all other
  // actions. For only one context between two calls of take_all().
  void released(std::uint32_t context) {
    released_ = context;
    any_ = true;
  }
  void idle(std::uint32_t context) { next(Action::Kind::idle).context = context; }
  void send_in_line(Packet* packet) { next(Action::Kind::send_in_line).packet = packet; }
  // Returns the event for the caller to fill in; `records`, if any, are copied.
  cc::Event& deliver(std::uint32_t context, const IntStack* records = nullptr) {
    Action& action = next(Action::Kind::deliver);
    action.context = context;
    action.event = cc::Event{};
    if (records != nullptr) [[unlikely]] {
      action.records = *records;
      action.event.int_stack = &action.records;
    }
    return action.event;
  }

  // Hands out all actions, oldest first, then the context of released(), and forgets them. Neither
  // perform(Action&) nor release(context) adds any.
  template <class Perform, class Release>
  void take_all(Perform&& perform, Release&& release) {
    any_ = false;
    for (std::uint32_t i = 0; i < count_; ++i) perform(list_[i]);
    count_ = 0;
    if (released_ == kNone) return;
    release(released_);
    released_ = kNone;
  }

 private:
  // More than a packet or timer needs; only work kept for many packets takes more.
  static constexpr std::uint32_t kUsual = 16;
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;

  [[gnu::always_inline]] Action& next(Action::Kind kind) {
    if (count_ == capacity_) [[unlikely]]
      grow();
    any_ = true;
    Action& action = list_[count_++];
    action.kind = kind;
    return action;
  }
  void add(Action::Kind kind, QueuePair& qp) { next(kind).qp = &qp; }
  [[gnu::cold]] void grow();

  bool& any_;
  std::uint32_t count_ = 0;
  std::uint32_t capacity_ = kUsual;
  std::uint32_t released_ = kNone;
  std::unique_ptr<Action[]> list_;
};

}  // namespace transport
}  // namespace paceline
