// The requester: turns posted work into packets, and acknowledgements into completions. Go-back-N
// (InfiniBand vol. 1, 9.7.2 and 9.7.5): a sequence NAK or a timeout rewinds to the oldest
// unacknowledged packet, and each PSN is rebuilt exactly as it was.
#pragma once

#include <cstdint>
#include <span>

#include "dataplane/port/packet.h"
#include "dataplane/transport/engine_core.h"
#include "dataplane/wire/parse.h"
#include "dataplane/wire/xack.h"

namespace paceline::transport {

class RequesterPart {
 public:
  explicit RequesterPart(EngineCore& core) : core_(core) {}

  PostResult post(QueuePair& qp, const WorkRequest& posted);

  // Makes `packet` the one at next_psn, headers and payload complete, accounted in the queue pair.
  // False when the payload is not at hand: the requester has no work then, or the queue pair has
  // failed. Called by the scheduler.
  bool build_next(QueuePair& qp, Packet& packet);
  // There is a packet that may go out now.
  static bool has_work(const QueuePair& qp, Picos now) {
    const RequesterState& r = qp.requester;
    const bool fresh = r.cursor != r.queue.tail() && r.stops == 0;
    return (fresh || (r.repair && (r.stops & requester_stop::memory) == 0)) &&
           now >= r.blocked_until;
  }
  // Of that packet on the wire.
  static std::uint32_t next_wire_bytes(const EngineCore& core, const QueuePair& qp);

  // Responses. `parsed` is an ACK or NAK whose destination is `qp`.
  void on_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed);
  // The same for a READ response or an atomic acknowledgement. Takes the packet: frees it, or parks
  // it while memory answers.
  void on_response(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  // Answers are being held back: this one, too, or it would be taken out of order.
  bool holds_answers(const QueuePair& qp) const { return !qp.requester.parked.empty(); }
  void hold(QueuePair& qp, Packet* packet) { qp.requester.parked.push(packet); }
  // An XACK for `qp`. True: it shows a gap to a requester under go-back-N. Call on_gap() then, when
  // what this call has asked for is done: the algorithm hears of the acknowledgement first.
  bool on_xack(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void on_gap(QueuePair& qp, const wire::ParsedPacket& parsed);
  // Of a READ response for `qp` only the headers have come (trimmed.cc).
  void on_trimmed_response(QueuePair& qp, Psn psn);
  // For EngineView::check_conservation.
  static bool repair_adds_up(const QueuePair& qp);
  // A parked packet is a READ response or an atomic acknowledgement, not an acknowledgement.
  static bool is_response(const Packet& packet);
  // The peer speaks XACK: from the next request on, if none is under way.
  void begin_selective(QueuePair& qp);
  void on_cnp(QueuePair& qp);
  // Engine::limit_rate.
  void limit_rate(QueuePair& qp, Rate rate, std::uint32_t burst_bytes);
  // A packet of `bytes` on the wire was built, in a queue pair with a limit: when the next may be.
  void charge_limit(QueuePair& qp, std::uint32_t bytes);
  // The queue pair's timer fired (retransmission or RNR back-off).
  void on_timer(QueuePair& qp);
  void memory_ready(QueuePair& qp);

  // While classes change from packet to packet (cc::Decision::classed): the class of the next one,
  // and a packet that was built goes in it (packet_class.cc).
  static std::uint8_t class_of_next(const EngineCore& core, const QueuePair& qp,
                                    const CongestionContext& context);
  static void put_class(QueuePair& qp, Packet& packet, std::uint8_t traffic_class);

  // The queue pair is in error: the request that `psn` belongs to (the oldest, when none does)
  // completes with `status`, all others with `flushed`.
  void fail(QueuePair& qp, CompletionStatus status, Psn psn);
  void fail(QueuePair& qp, CompletionStatus status) { fail(qp, status, qp.requester.una_psn); }
  // Takes all work away without completing it; the queue pair stays in its context.
  void drop_work(QueuePair& qp);
  // Frees what is parked.
  void discard(QueuePair& qp);
  // The congestion context that pays for a request: the queue pair's, or the address handle's.
  static std::uint32_t context_of(const EngineCore& core, const QueuePair& qp,
                                  const QueuedRequest& request) {
    return qp.config.type == QpType::ud ? core.handles[request.address_handle >> 8].context
                                        : qp.context;
  }
  // Begins no request more (SQD) / does again.
  void drain(QueuePair& qp, bool notify);
  void undrain(QueuePair& qp);

 private:
  struct Span {
    std::uint64_t payload = 0;
    std::uint64_t wire = 0;
  };
  enum class Outcome : std::uint8_t { done, pending };
  enum class Taken : std::uint8_t { yes, pending, failed };

  bool take_goodbye(QueuePair& qp, wire::Aeth aeth, Psn expected);
  bool wants_ack(QueuePair& qp) const;
  Picos limit_burst(const RequesterState& r) const;
  static std::uint32_t payload_of(const QueuePair& qp, const SendEntry& entry,
                                  std::uint32_t packet);
  static std::uint32_t wire_of(const EngineCore& core, const QueuePair& qp, const SendEntry& entry,
                               std::uint32_t packet);
  static std::uint32_t request_wire_of(const EngineCore& core, const QueuePair& qp,
                                       const SendEntry& entry);
  Span span_of(const QueuePair& qp, const SendEntry& entry, std::uint32_t from,
               std::uint32_t to) const;
  Span span_between(const QueuePair& qp, std::uint32_t position, Psn from, Psn to) const;
  bool fill_payload(QueuePair& qp, Packet& packet, std::uint32_t position, std::uint64_t offset,
                    std::uint32_t bytes);
  bool fill_gathered(QueuePair& qp, Packet& packet, std::uint32_t position, std::uint64_t offset,
                     std::uint32_t bytes);
  void build_data(QueuePair& qp, Packet& packet, const SendEntry& entry, std::uint32_t index,
                  Psn psn, std::uint32_t payload, bool ack_request);
  void build_read(QueuePair& qp, Packet& packet, const SendEntry& entry, std::uint32_t from,
                  std::uint32_t count);
  bool filled(QueuePair& qp, MemoryResult result);
  PostResult keep_source(QueuePair& qp, const WorkRequest& posted, QueuedRequest& kept);
  std::span<const Segment> segments_of(const QueuePair& qp, std::uint32_t position) const;
  PostResult post_kept(QueuePair& qp, const QueuedRequest& request);
  void build_request(QueuePair& qp, Packet& packet, const SendEntry& entry);

  // Everything before `next` is acknowledged. Returns the wire bytes newly acknowledged.
  std::uint64_t advance(QueuePair& qp, Psn next);
  // The same, with all that follows from it: completions, timer, order.
  std::uint64_t progress(QueuePair& qp, Psn next);
  // Completes the requests that end before `next`.
  void complete_before(QueuePair& qp, Psn next);
  std::uint32_t sample_rtt(Picos sent_at);  // ns, 0: none
  void report_ack(QueuePair& qp, std::uint64_t acked, std::uint32_t rtt_ns,
                  std::uint32_t marked_bytes = 0, std::uint32_t host_delay_ns = 0,
                  const IntStack* int_stack = nullptr);
  // Sends again from una_psn. Returns the wire bytes given up.
  std::uint64_t rewind(QueuePair& qp);

  // End-to-end flow control (credits.cc).
  static std::int32_t beyond_credits(const RequesterState& r, const SendEntry& entry) {
    return r.credit_limited ? sends_beyond_credits(r, entry) : 0;
  }
  static std::int32_t sends_beyond_credits(const RequesterState& r, const SendEntry& entry);
  void take_credits(QueuePair& qp, wire::Aeth aeth) {
    if (aeth.value() != wire::kCreditUnlimited || qp.requester.credit_limited) {
      update_credits(qp, aeth);
    }
  }
  void update_credits(QueuePair& qp, wire::Aeth aeth);

  static wire::Opcode opcode_of(WorkOpcode work, bool first, bool last);

  // UC (unreliable.cc) and UD (datagram.cc).
  PostResult check_unreliable(const QueuePair& qp, const QueuedRequest& request) const;
  bool build_unreliable(QueuePair& qp, Packet& packet);
  bool build_datagram(QueuePair& qp, Packet& packet);
  void sent_unacknowledged(QueuePair& qp, std::uint32_t peer, std::uint32_t payload, bool last);
  void fail_sends(QueuePair& qp, CompletionStatus status);
  void drop_datagrams(QueuePair& qp);

  // READs and atomics (read_requester.cc).
  SendEntry* unanswered_before(QueuePair& qp, Psn end);
  void answers_lost(QueuePair& qp);
  Outcome accept_response(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  Taken take_response(QueuePair& qp, const SendEntry& entry, const wire::ParsedPacket& parsed,
                      const Packet& packet);
  MemoryResult place_response(QueuePair& qp, const SendEntry& entry,
                              const wire::ParsedPacket& parsed, const Packet& packet);
  void check_order(QueuePair& qp);
  void check_drained(QueuePair& qp);

  // Selective repeat (selective_requester.cc).
  void want_telemetry(const QueuePair& qp, Packet& packet);
  void note_sent(QueuePair& qp, Psn psn, std::uint32_t wire_bytes, std::uint32_t extent,
                 bool request);
  void take_xack(QueuePair& qp, Psn expected, const wire::Xack& xack);
  std::uint64_t take_trim(QueuePair& qp, Psn psn);  // trimmed.cc
  void take_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed);
  bool take_as_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed, const wire::Xack& xack);
  std::uint64_t acknowledge_before(QueuePair& qp, Psn expected);
  std::uint32_t mark_delivered(QueuePair& qp, SentPacket& sent);
  void mark_lost(QueuePair& qp, Psn psn);
  void unsend(QueuePair& qp, Psn psn);
  void forget_flight(QueuePair& qp, SentPacket& sent);
  std::uint64_t find_lost(QueuePair& qp);
  bool advance_selective(QueuePair& qp);
  void update_window(QueuePair& qp);
  void update_repair(QueuePair& qp);
  void refused(QueuePair& qp, Psn expected, wire::Aeth aeth);
  void put_off(QueuePair& qp, Psn expected, wire::Aeth aeth);
  void reset_selective(QueuePair& qp);

  // Repairs (selective_repair.cc).
  std::uint32_t position_of(const QueuePair& qp, Psn psn) const;
  static std::uint32_t repair_wire_bytes(const EngineCore& core, const QueuePair& qp);
  bool build_repair(QueuePair& qp, Packet& packet);
  // A response, by either kind of repair: one that is not taken is counted by the reason
  // (telemetry::for_each_undelivered).
  Outcome take_in(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void count_untaken(const QueuePair& qp, Psn psn, bool could_send);
  void count_discarded(const Packet& packet);
  void on_selective_timer(QueuePair& qp);
  void probe_tail(QueuePair& qp);
  Picos probe_after(const QueuePair& qp) const;
  static Picos reorder_wait(const SelectiveSend& s);
  void arm_selective(QueuePair& qp);

  // Answers to READs and atomics (selective_answers.cc).
  bool build_ask(QueuePair& qp, Packet& packet);
  Outcome accept_selective_response(QueuePair& qp, const wire::ParsedPacket& parsed,
                                    const Packet& packet);
  void note_answer(QueuePair& qp, Psn psn);
  void note_repeated(QueuePair& qp);
  void note_late(QueuePair& qp, Psn end);
  void note_atomic(QueuePair& qp);
  bool ask_missing(QueuePair& qp);
  bool ask(QueuePair& qp, Psn psn);
  void forget_asks(QueuePair& qp);

  void arm_timer(QueuePair& qp);
  void set_timer(QueuePair& qp, Picos at);

  EngineCore& core_;
};

}  // namespace paceline::transport
