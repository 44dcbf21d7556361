#include "dataplane/transport/ends/responder.h"

#include "dataplane/transport/datagram/datagram.h"
#include "dataplane/transport/datagram/unreliable_connection.h"
#include "dataplane/transport/ends/domain_receiver.h"
#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/answers.h"
#include "dataplane/transport/message/message_placer.h"
#include "dataplane/transport/message/notification_point.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/read/read_responder.h"
#include "dataplane/transport/selective/selective_receiver.h"

namespace paceline::transport {

namespace {

bool is_write(const wire::ParsedPacket& parsed) {
  return parsed.properties.operation == wire::Operation::write;
}

// SEND and WRITE; READs and atomics are requests without payload.
bool carries_message(const wire::ParsedPacket& parsed) {
  return parsed.properties.carries_payload();
}

}  // namespace

void Responder::on_request(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet) {
  if (!can_receive(qp.state)) {
    ++core_.counters.wrong_state;
    core_.pool.free(packet);
    return;
  }
  if (!qp.established) {
    qp.established = true;
    if (qp.state == QpState::rtr) {
      core_.events.push({AsyncEventKind::comm_established, qp.number});
    }
  }
  if (parsed.ecn == Ecn::ce) {
    qp.config.type == QpType::ud ? NotificationPoint::on_marked_datagram(core_, qp, parsed, *packet)
                                 : NotificationPoint::on_marked(core_, qp);
  }
  if (qp.responder.halts != 0) {
    if ((qp.responder.halts & responder_halt::error_pending) != 0) {
      ++core_.counters.wrong_state;
      core_.pool.free(packet);
    } else {
      park(qp, packet);
    }
    return;
  }
  if (qp.responder.selective) [[unlikely]] {
    take_selective(qp, parsed, packet);
    return;
  }
  if (take(qp, parsed, *packet) == RequestOutcome::pending) {
    wait_for_memory(qp, packet);
    return;
  }
  core_.pool.free(packet);
}

// The packet is the next one to be taken once memory has answered.
void Responder::wait_for_memory(QueuePair& qp, Packet* packet) {
  qp.responder.halts |= responder_halt::memory;
  ++core_.counters.memory_waits;
  qp.responder.parked.push_front(packet);
  ++qp.responder.parked_packets;
  ++core_.parked_packets;
}

// Parks the packet behind the one that waits. If too many wait already, it is lost, as on a link.
void Responder::park(QueuePair& qp, Packet* packet) {
  if (core_.may_park(qp.responder.parked_packets)) {
    core_.park(qp.responder, packet);
    return;
  }
  telemetry::EngineCounters& c = core_.counters;
  ++(qp.unreliable ? c.unreliable_drops : c.beyond_window);
  ++(qp.unreliable ? c.dropped_no_receive : c.dropped_gap);
  core_.pool.free(packet);
}

void Responder::memory_ready(QueuePair& qp) {
  ResponderState& r = qp.responder;
  if (r.response_waits) {
    r.response_waits = false;
    Answers::give_due(core_, qp);
    core_.actions.settle(qp);
  }
  if ((r.halts & responder_halt::memory) == 0) return;
  r.halts &= static_cast<std::uint8_t>(~responder_halt::memory);
  while (!r.parked.empty()) {
    Packet* packet = r.parked.head;
    wire::ParsedPacket parsed;
    const wire::ParseError error =
        wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed);
    // An earlier packet may have put the queue pair into error, or be about to.
    const bool takes = error == wire::ParseError::ok && qp.state != QpState::error && r.halts == 0;
    if (takes && qp.responder.selective) {
      core_.unpark(r);
      if (!take_selective(qp, parsed, packet)) return;
      continue;
    }
    if (!takes) ++core_.counters.wrong_state;
    if (takes && take(qp, parsed, *packet) == RequestOutcome::pending) {
      r.halts |= responder_halt::memory;
      return;  // it stays the first of the parked packets
    }
    core_.pool.free(core_.unpark(r));
  }
}

void Responder::discard(QueuePair& qp) {
  ResponderState& r = qp.responder;
  for (; !r.parked.empty(); core_.pool.free(core_.unpark(r))) ++core_.counters.wrong_state;
  r.halts = 0;
  QpFailure::drop_early(core_, qp);
}

// Takes packets of all services but RC.
RequestOutcome Responder::take_otherwise(QueuePair& qp, const wire::ParsedPacket& parsed,
                                         const Packet& packet) {
  if (qp.config.type == QpType::uc) return UnreliableConnection::accept(core_, qp, parsed, packet);
  if (qp.config.type == QpType::ud) return Datagram::accept(core_, qp, parsed, packet);
  const bool next = parsed.psn == qp.responder.position.expected();
  if (next && !DomainReceiver::select(core_, qp, parsed)) {
    return Answers::refuse_packet(core_, qp, wire::NakCode::invalid_request);
  }
  return accept(qp, parsed, packet);
}

// A READ or an atomic.
RequestOutcome Responder::accept_question(QueuePair& qp, const wire::ParsedPacket& parsed) {
  const std::uint64_t taken = core_.counters.rx_data_packets;
  const RequestOutcome outcome = ReadResponder::accept(core_, qp, parsed);
  if (outcome == RequestOutcome::done && core_.counters.rx_data_packets == taken) {
    ++core_.counters.dropped_refused;
  }
  return outcome;
}

RequestOutcome Responder::accept(QueuePair& qp, const wire::ParsedPacket& parsed,
                                 const Packet& packet) {
  ResponderState& r = qp.responder;
  const std::int32_t ahead = distance(parsed.psn, r.position.expected());
  const bool becn = core_.config.cnp_in_ack && parsed.ecn == Ecn::ce;
  if (ahead < 0) {
    // Seen before: its answer was lost, or it was sent twice. Answer again, but execute nothing
    // again.
    ++core_.counters.duplicates;
    ++core_.counters.dropped_stale;
    if (qp.responder.selective) {
      // A READ is repeated on purpose, to get answers that were lost.
      qp.selective->receive.xack.want();
      if (carries_message(parsed)) qp.selective->receive.xack.on_duplicate();
    }
    if (!carries_message(parsed)) {
      ReadResponder::repeat(core_, qp, parsed);
      return RequestOutcome::done;
    }
    if (parsed.ack_request) {
      const Psn newest = Answers::answered_itself(qp) ? parsed.psn : r.position.expected() - 1;
      Answers::acknowledge(core_, qp, newest, Answers::ack_of(qp, r.position.msn()), becn);
    }
    return RequestOutcome::done;
  }
  if (ahead > 0) {
    if (qp.responder.selective) return SelectiveReceiver::accept_early(core_, qp, parsed, packet);
    ++core_.counters.out_of_sequence;
    ++core_.counters.dropped_gap;
    Answers::tell_gap(core_, qp, becn);
    return RequestOutcome::done;
  }

  if (!carries_message(parsed)) return accept_question(qp, parsed);
  const bool starts = parsed.properties.begins_message();
  const bool ends = parsed.properties.ends_message();
  // Opcode sequence (vol. 1, 9.7.4.1.5): first or only between messages, middle or last of the same
  // kind within one.
  if (starts == r.message.open() || (!starts && r.message.is_write() != is_write(parsed))) {
    return Answers::refuse_packet(core_, qp, wire::NakCode::invalid_request);
  }
  // Full packets until the last (9.7.4.1.6).
  const std::uint32_t mtu = qp.mtu;
  if ((!ends && parsed.payload_bytes != mtu) || parsed.payload_bytes > mtu ||
      (ends && !starts && parsed.payload_bytes == 0)) {
    return Answers::refuse_packet(core_, qp, wire::NakCode::invalid_request);
  }
  if (starts) {
    switch (MessagePlacer::begin(core_, qp, parsed)) {
      case MessagePlacer::Begin::done:
        break;
      case MessagePlacer::Begin::not_ready:
        Answers::not_ready(core_, qp);
        return RequestOutcome::done;
      case MessagePlacer::Begin::no_access:
        return Answers::refuse_packet(core_, qp, wire::NakCode::remote_access_error);
    }
  }
  if (r.message.is_write() && parsed.payload_bytes > r.message.remaining()) {
    return Answers::refuse_packet(core_, qp, wire::NakCode::invalid_request);
  }
  if (r.message.is_write() && ends && parsed.payload_bytes != r.message.remaining()) {
    return Answers::refuse_packet(core_, qp, wire::NakCode::invalid_request);
  }
  // A WRITE with immediate takes a receive request, too, at its end.
  const bool needs_receive = r.message.is_write() && ends && parsed.properties.has_immediate();
  if (needs_receive && !MessagePlacer::take_receive(qp)) {
    Answers::not_ready(core_, qp);
    if (starts) r.message.close();  // the packet comes again as a whole
    return RequestOutcome::done;
  }
  if (!r.message.is_write() && r.message.received() + parsed.payload_bytes > r.receive.length) {
    // Longer than the posted receive: local error here, invalid request at the peer (9.7.4.1.7).
    QpFailure::fail_receive(core_, qp, CompletionStatus::local_length_error);
    return Answers::refuse_packet(core_, qp, wire::NakCode::invalid_request);
  }
  switch (MessagePlacer::place(core_, qp, parsed, packet)) {
    case MemoryResult::done:
      break;
    case MemoryResult::pending:
      return RequestOutcome::pending;
    case MemoryResult::fault:
      if (!r.message.is_write())
        QpFailure::fail_receive(core_, qp, CompletionStatus::local_protection_error);
      return Answers::refuse_packet(core_, qp,
                                    r.message.is_write() ? wire::NakCode::remote_access_error
                                                         : wire::NakCode::remote_operational_error);
  }
  if (parsed.properties.has_ieth() &&
      !core_.regions.invalidate(parsed.ext.invalidate_rkey, qp.config.pd, access::remote_invalidate,
                                qp.number)) {
    QpFailure::fail_receive(core_, qp, CompletionStatus::remote_invalid_request);
    return Answers::refuse_packet(core_, qp, wire::NakCode::remote_access_error);
  }
  MessagePlacer::placed(core_, qp, parsed.payload_bytes);
  r.position.accept();
  if (ends) MessagePlacer::finish(core_, qp, parsed);
  if (parsed.ack_request || becn)
    Answers::acknowledge(core_, qp, parsed.psn, Answers::ack_of(qp, r.position.msn()), becn);
  return RequestOutcome::done;
}

// Takes the packet. False when the packet, or one that it released, waits for memory.
bool Responder::take_selective(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet) {
  ResponderState& r = qp.responder;
  qp.selective->receive.xack.on_packet(parsed, *packet, core_.arrived_at());
  const Psn was = r.position.expected();
  const bool gap = before(was, qp.selective->receive.early.highest());
  switch (take(qp, parsed, *packet)) {
    case RequestOutcome::pending:
      wait_for_memory(qp, packet);
      return false;
    case RequestOutcome::held:
      qp.selective->receive.early.hold(parsed.psn, packet);
      break;
    case RequestOutcome::done:
      core_.pool.free(packet);
      if (r.position.expected() != was) {
        SelectiveReceiver::release_below(core_, qp, was);
        deliver_held(qp);
        // Acknowledge even if the packet does not ask: the packets that it completes have asked
        // before, and nothing need follow (after RFC 5681, 4.2: a segment that fills a gap is
        // acknowledged at once).
        if (gap) qp.selective->receive.xack.want();
      }
      break;
  }
  Answers::give_xack(core_, qp);
  return (r.halts & responder_halt::memory) == 0;
}

// Takes in packets that came early, for as long as they are next.
void Responder::deliver_held(QueuePair& qp) {
  ResponderState& r = qp.responder;
  SelectiveReceive& s = qp.selective->receive;
  while (r.halts == 0 && qp.state != QpState::error && !s.xack.refuses() &&
         s.early.has(r.position.expected())) {
    const Psn psn = r.position.expected();
    const bool ends = !s.early.continues(psn);
    Packet* const packet = s.early.release(psn);
    if (packet == nullptr) {  // a WRITE that was placed
      if (r.message.open()) {
        Answers::refuse(core_, qp, wire::NakCode::invalid_request);
        return;
      }
      r.position.accept();
      if (ends) {
        r.position.complete_message();
        s.continued_bytes = 0;
      } else {
        s.continued_bytes += qp.mtu;
      }
      continue;
    }
    wire::ParsedPacket parsed;
    const wire::ParseError error =
        wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed);
    if (error == wire::ParseError::ok && take(qp, parsed, *packet) == RequestOutcome::pending) {
      wait_for_memory(qp, packet);
      return;
    }
    core_.pool.free(packet);
    if (r.position.expected() == psn) return;  // put off, or refused
    SelectiveReceiver::release_below(core_, qp, psn);
  }
}

// The request is a WRITE or a SEND: nothing else has a payload.
void Responder::on_trimmed(QueuePair& qp, const wire::ParsedPacket& parsed, const Packet& packet) {
  ResponderState& r = qp.responder;
  if (!can_receive(qp.state) || r.halts != 0) return;  // found missing later, like any packet
  if (parsed.ecn == Ecn::ce) NotificationPoint::on_marked(core_, qp);
  const std::int32_t ahead = distance(parsed.psn, r.position.expected());
  if (ahead < 0) {
    ++core_.counters.duplicates;
    return;
  }
  if (!r.selective) {
    if (ahead > 0) ++core_.counters.out_of_sequence;
    Answers::tell_gap(core_, qp, false);
    return;
  }
  SelectiveReceive& s = qp.selective->receive;
  if (ahead >= s.early.window()) {
    ++core_.counters.beyond_window;
    return;
  }
  if (s.early.has(parsed.psn)) {
    ++core_.counters.duplicates;
    return;
  }
  s.xack.on_packet(parsed, packet, core_.arrived_at());
  s.xack.on_trimmed();
  Answers::send_xack(core_, qp, r.position.expected(), Answers::ack_of(qp, r.position.msn()));
}

}  // namespace paceline::transport
