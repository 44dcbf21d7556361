// The requester: turns posted work into packets, and acknowledgements into completions. Go-back-N
// (InfiniBand vol. 1, 9.7.2 and 9.7.5): a sequence NAK or a timeout rewinds to the oldest
// unacknowledged packet, and each PSN is rebuilt exactly as it was.
#pragma once

#include <cstdint>

#include "dataplane/port/packet.h"
#include "dataplane/transport/engine_core.h"
#include "dataplane/wire/parse.h"

namespace paceline::transport {

class Scheduler;

class RequesterPart {
 public:
  RequesterPart(EngineCore& core, Scheduler& scheduler) : core_(core), scheduler_(scheduler) {}

  PostResult post(QueuePair& qp, const WorkRequest& request);

  // The packet at next_psn, headers and payload complete, accounted in the queue pair; nullptr when
  // the payload is not at hand or no packet is free. Called by the scheduler.
  Packet* build_next(QueuePair& qp);
  // There is a packet that may go out now.
  bool has_work(const QueuePair& qp) const {
    const RequesterState& r = qp.requester;
    return r.cursor != r.queue.tail() && !r.waiting_memory && core_.now >= r.blocked_until;
  }
  std::uint32_t next_wire_bytes(const QueuePair& qp) const;

  // Responses. `parsed` is an ACK or NAK whose destination is `qp`.
  void on_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed);
  void on_cnp(QueuePair& qp);
  // The queue pair's timer fired (retransmission or RNR back-off).
  void on_timer(QueuePair& qp);
  void memory_ready(QueuePair& qp);

  // Completes everything outstanding with `flushed`; the queue pair is in error.
  void fail(QueuePair& qp, CompletionStatus status);

 private:
  struct Span {
    std::uint64_t payload = 0;
    std::uint64_t wire = 0;
  };
  bool wants_ack(QueuePair& qp) const;
  std::uint32_t payload_of(const SendEntry& entry, std::uint32_t packet) const;
  std::uint32_t wire_of(const QueuePair& qp, const SendEntry& entry, std::uint32_t packet) const;
  Span span_of(const QueuePair& qp, const SendEntry& entry, std::uint32_t from,
               std::uint32_t to) const;
  Span span_between(const QueuePair& qp, std::uint32_t position, Psn from, Psn to) const;
  bool fill_payload(QueuePair& qp, Packet& packet, const SendEntry& entry, std::uint64_t offset,
                    std::uint32_t bytes);
  // Everything before `next` is acknowledged. Returns the wire bytes newly acknowledged.
  std::uint64_t advance(QueuePair& qp, Psn next);
  // Sends again from una_psn. Returns the wire bytes given up.
  std::uint64_t rewind(QueuePair& qp);
  void arm_timer(QueuePair& qp);
  void set_timer(QueuePair& qp, Picos at);
  void resume(QueuePair& qp);

  EngineCore& core_;
  Scheduler& scheduler_;
};

}  // namespace paceline::transport
