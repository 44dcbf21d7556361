// A queue pair between a program and an engine: takes its requests out of the shared queues, gives
// them to the engine, and says of each completion which request it was. Of the worker's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "dataplane/attach/queues.h"
#include "dataplane/base/units.h"
#include "dataplane/service/completion_adapter.h"
#include "dataplane/service/receive_adapter.h"
#include "dataplane/service/work_queue_view.h"
#include "dataplane/transport/engine.h"

namespace paceline::service {

// What a look at a queue brought.
struct Pumped {
  std::uint32_t messages = 0;  // given to the engine, or completed without it
  bool any = false;            // these, or receive requests
  bool more = false;           // something waits: it will not be rung for again
};

class PairAdapter {
 public:
  struct Setup {
    transport::Engine* engine = nullptr;
    const PairTable* pairs = nullptr;
    std::uint32_t number = 0;
    std::uint32_t handle = 0;
    std::uint32_t pd = 0;
    transport::QpType type = transport::QpType::rc;
    std::uint32_t max_segments = 1;
    std::uint32_t max_inline = 0;
    CompletionAdapter* send_cq = nullptr;
    CompletionAdapter* receive_cq = nullptr;
    WorkQueueView send;
    OwnReceives* receives = nullptr;  // nullptr: it shares a receive queue
    int notices = -1;                 // the pipe of its session
  };

  explicit PairAdapter(const Setup& setup) : s_(setup) {}
  // The engine has made it; before anything else.
  void set_number(std::uint32_t number) { s_.number = number; }

  std::uint32_t number() const { return s_.number; }
  std::uint32_t handle() const { return s_.handle; }
  bool completes_to(const CompletionAdapter& cq) const {
    return s_.send_cq == &cq || s_.receive_cq == &cq;
  }
  int notices() const { return s_.notices; }

  // Takes up to `budget` messages (receive requests count as none).
  Pumped pump(Picos now, std::uint32_t budget);
  // Requests of the send queue that have not completed, those among them that will do so silently.
  std::uint32_t unfinished_sends() const {
    return s_.send.waiting() + s_.engine->queued_sends(s_.number);
  }
  bool sends_complete_to(const CompletionAdapter& cq) const { return s_.send_cq == &cq; }
  // Into RESET: whatever is in the queues is gone without a completion.
  void forget();
  // What the program sees of it.
  attach::CompletionEntry entry_of(const transport::Completion& completion) const;
  // True once after what the program wrote made no sense: the queue pair is in error.
  bool report_failed() { return failed_ && !std::exchange(reported_, true); }
  // Into error, as after a request that cannot be carried out.
  void fail(Picos now);

 private:
  enum class Step : std::uint8_t { taken, wait };
  Step take_send(Picos now);
  Step refuse(Picos now, std::uint32_t index, const attach::SendSlot& slot,
              attach::EntryStatus status);
  // Both in their turn, without a packet.
  Step invalidate(Picos now, std::uint32_t index, const attach::SendSlot& slot);
  Step bind_window(Picos now, std::uint32_t index, const attach::SendSlot& slot);
  Step done_here(Picos now, std::uint32_t index, const attach::SendSlot& slot);
  attach::CompletionEntry own_entry(Picos now, std::uint32_t index, const attach::SendSlot& slot,
                                    attach::EntryStatus status) const;

  Setup s_;
  bool failed_ = false;  // its shared queues make no sense any more
  bool reported_ = false;
};

}  // namespace paceline::service
