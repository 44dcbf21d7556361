// A queue pair between a program and an engine: takes requests from the shared queues, gives them
// to the engine, and finds the request of each completion. For the worker's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "dataplane/attach/queues.h"
#include "dataplane/base/units.h"
#include "dataplane/service/adapters/completion_adapter.h"
#include "dataplane/service/adapters/receive_adapter.h"
#include "dataplane/service/adapters/work_queue_view.h"
#include "dataplane/telemetry/nic_meter.h"
#include "dataplane/transport/engine.h"

namespace paceline::service {

// Result of reading a queue.
struct Pumped {
  std::uint32_t messages = 0;  // given to the engine, or completed without it
  bool any = false;            // these, or receive requests
  bool more = false;           // more waits, and the doorbell will not ring for it again
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
    OwnReceives* receives = nullptr;       // nullptr: it shares a receive queue,
    SharedReceives* shared = nullptr;      // this one
    int notices = -1;                      // the pipe of its session
    telemetry::NicMeter* meter = nullptr;  // of its NIC; nullptr: nothing is counted
    std::uint32_t user = 0;                // whose it is
    std::uint32_t pid = 0;
  };

  explicit PairAdapter(const Setup& setup)
      : s_(setup), begun_(setup.meter == nullptr ? 0 : setup.send.slots()) {}
  // The engine has created it; call this before anything else.
  void set_number(std::uint32_t number) { s_.number = number; }

  std::uint32_t number() const { return s_.number; }
  // Memory that it needs beside the queues themselves.
  static std::size_t bytes_for(const attach::WorkQueueShape& send) {
    return send.slots * sizeof(telemetry::MessageBegun);
  }
  // Tells its program of an event, a number of enum ibv_event_type; with a target of XRC, all
  // programs that have it.
  void notify(std::uint32_t event) const;
  void add_listener(int notices, std::uint32_t handle) { listeners_.push_back({notices, handle}); }
  void remove_listener(int notices, std::uint32_t handle);
  std::uint32_t handle() const { return s_.handle; }
  std::uint32_t user() const { return s_.user; }
  std::uint32_t pid() const { return s_.pid; }

  // An XRC target has no queues of its own.
  bool is_target() const { return s_.type == transport::QpType::xrc_target; }

  // Takes up to `budget` messages (receive requests count as none).
  Pumped pump(Picos now, std::uint32_t budget);
  // Requests of the send queue that have not completed, those among them that will do so silently.
  std::uint32_t unfinished_sends() const {
    return s_.send.waiting() + s_.engine->view().queued_sends(s_.number);
  }
  bool sends_complete_to(const CompletionAdapter& cq) const { return s_.send_cq == &cq; }
  // Goes to RESET: requests in the queues disappear without a completion.
  void forget();
  // The engine has completed a request of the send queue: it and those before it, which have
  // completed silently, are counted.
  void count_end(const transport::Completion& completion);
  // The queue pair is destroyed: requests in progress get no completion any more.
  void count_lost();
  // The entry that the program sees. The room that a completion frees is visible before the entry:
  // for a shared receive queue it is told here, for the queue pair's own queues it comes with the
  // entry.
  attach::CompletionEntry entry_of(const transport::Completion& completion) const;
  // True once after the program wrote something that makes no sense: the queue pair is in error.
  bool report_failed() { return failed_ && !std::exchange(reported_, true); }
  // Puts the queue pair into error, as after a request that cannot be carried out.
  void fail(Picos now);

 private:
  enum class Step : std::uint8_t { taken, wait };
  Step take_send(Picos now);
  Step refuse(Picos now, std::uint32_t index, const attach::SendSlot& slot,
              attach::EntryStatus status);
  // Both run in order, without a packet.
  Step invalidate(Picos now, std::uint32_t index, const attach::SendSlot& slot);
  Step bind_window(Picos now, std::uint32_t index, const attach::SendSlot& slot);
  Step done_here(Picos now, std::uint32_t index, const attach::SendSlot& slot);
  attach::CompletionEntry own_entry(Picos now, std::uint32_t index, const attach::SendSlot& slot,
                                    attach::EntryStatus status) const;

  void count_begin(Picos now, std::uint32_t index, const transport::WorkRequest& request);
  std::uint8_t cluster_of(const transport::WorkRequest& request) const;

  struct Listener {
    int notices;
    std::uint32_t handle;

    friend bool operator==(const Listener&, const Listener&) = default;
  };

  Setup s_;
  std::vector<Listener> listeners_;             // of a target of XRC
  std::vector<telemetry::MessageBegun> begun_;  // by slot of the send queue
  std::uint32_t oldest_ = 0;                    // request that is not known to have ended
  bool failed_ = false;                         // its shared queues no longer make sense
  bool reported_ = false;
};

}  // namespace paceline::service
