// The responder: checks request packets against the expected sequence (InfiniBand vol. 1, 9.7.4 and
// 9.8), places their payload, and answers with ACK, NAK or RNR NAK. Also the notification point of
// congestion control: CE-marked data makes it send CNPs, at most one per interval and flow.
#pragma once

#include <cstdint>

#include "dataplane/port/packet.h"
#include "dataplane/transport/engine_core.h"
#include "dataplane/transport/scatter_gather.h"
#include "dataplane/wire/parse.h"

namespace paceline::transport {

class RequesterPart;

class ResponderPart {
 public:
  ResponderPart(EngineCore& core, RequesterPart& requester) : core_(core), requester_(requester) {}

  // A request packet for `qp`. Takes the packet: frees it, or parks it while memory answers.
  void on_request(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  // CE-marked data has arrived, requests or READ responses: tells their sender.
  void on_marked(QueuePair& qp);
  // Of a request packet for `qp` only the headers have come (trimmed.cc).
  void on_trimmed(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void memory_ready(QueuePair& qp);
  // Frees what is parked.
  void discard(QueuePair& qp);
  // Nobody will answer for this queue pair any more: a NAK where the peer is or will be next
  // (RequesterPart::on_acknowledge).
  void say_goodbye(QueuePair& qp) {
    send_acknowledge(qp, qp.responder.expected,
                     wire::Aeth::nak(qp.responder.msn, wire::NakCode::remote_operational_error),
                     false);
  }

  // READ responses are data that this end sends (responder_read.cc): the scheduler asks for each
  // when it may go. Requires qp.response_ready. Makes `packet` the next one, complete and accounted
  // in the queue pair; false when memory is not at hand, or the queue pair has failed.
  bool build_response(QueuePair& qp, Packet& packet);
  static std::uint32_t next_wire_bytes(const EngineCore& core, const QueuePair& qp);

 private:
  // held: the packet was kept for its turn.
  enum class Outcome : std::uint8_t { done, pending, held };

  enum class Begin : std::uint8_t { done, not_ready, no_access };

  Outcome take(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  Outcome accept(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  Begin begin_message(QueuePair& qp, const wire::ParsedPacket& parsed);
  MemoryResult place(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void finish_message(QueuePair& qp, const wire::ParsedPacket& parsed);
  void park(QueuePair& qp, Packet* packet) { qp.responder.parked.push(packet); }
  void wait_for_memory(QueuePair& qp, Packet* packet);
  const Region* writable(const QueuePair& qp, const wire::Reth& reth) const;

  bool take_receive(QueuePair& qp);
  SegmentAccess received_into(const QueuePair& qp, std::uint64_t offset, std::uint32_t bytes) const;

  // UC (unreliable.cc) and UD (datagram.cc): nothing is answered.
  Outcome accept_unreliable(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  Outcome drop_message(QueuePair& qp, std::uint64_t& reason);
  Outcome accept_datagram(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void on_marked_datagram(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);

  // Selective repeat (selective_responder.cc).
  void note_arrival(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  bool take_selective(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet);
  Outcome accept_early(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  bool place_early(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet);
  void take_early(QueuePair& qp);
  void forget_before(QueuePair& qp, Psn was);
  void give_selective_answer(QueuePair& qp);
  void send_xack(QueuePair& qp, Psn expected, wire::Aeth aeth);

  // READs and atomics (responder_read.cc).
  Outcome accept_answered(QueuePair& qp, const wire::ParsedPacket& parsed);
  Outcome accept_atomic(QueuePair& qp, const wire::ParsedPacket& parsed,
                        ResponderResource& resource);
  bool accept_read(QueuePair& qp, const wire::ParsedPacket& parsed, ResponderResource& resource);
  void repeat_answer(QueuePair& qp, const wire::ParsedPacket& parsed);
  void repeat_responses(QueuePair& qp, const wire::ParsedPacket& parsed,
                        const ResponderResource& resource, std::uint32_t index);
  struct NextResponse {
    const ResponderResource* resource;
    std::uint32_t index;
    bool first;  // of its run
    bool last;
    bool repair;  // asked for again
  };
  static NextResponse next_response(const QueuePair& qp);
  void owe(QueuePair& qp, std::uint64_t bytes);
  void disown(QueuePair& qp, std::uint64_t bytes);
  void give_due(QueuePair& qp);
  void drop_stale_repairs(QueuePair& qp);
  void update_response_ready(QueuePair& qp);

  // Answers (responder_answer.cc).
  void acknowledge(QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn);
  void send_acknowledge(QueuePair& qp, Psn psn, wire::Aeth aeth, bool becn);
  void send_atomic_acknowledge(QueuePair& qp, const ResponderResource& resource);
  void send_answer(QueuePair& qp, Packet* packet);
  static wire::Aeth ack_of(const QueuePair& qp, std::uint32_t msn);  // with credits (credits.cc)
  bool answered_itself(const QueuePair& qp) const;
  void put_off(QueuePair& qp);
  void fail_receive(QueuePair& qp, CompletionStatus status);
  void refuse(QueuePair& qp, wire::NakCode code);
  // The packet at hand with it.
  Outcome refuse_packet(QueuePair& qp, wire::NakCode code);

  EngineCore& core_;
  RequesterPart& requester_;
};

}  // namespace paceline::transport
