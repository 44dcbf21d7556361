// Packets that a switch has trimmed (wire/trim.h): what is left of them says which one it was. It
// is lost, and the one end that can tell the sender says so at once: the responder by an XACK that
// is marked (selective repeat) or a sequence NAK, one per gap (go-back-N); a requester whose READ
// response it was asks for that response again. What no one repairs (UC, UD) is gone.
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"

namespace paceline::transport {

// A request: a WRITE or a SEND, for nothing else has a payload.
void ResponderPart::on_trimmed(QueuePair& qp, const wire::ParsedPacket& parsed,
                               const Packet& packet) {
  ResponderState& r = qp.responder;
  if (!can_receive(qp.state) || r.halts != 0) return;  // found missing later, as any packet
  if (parsed.ecn == Ecn::ce) on_marked(qp);
  const std::int32_t ahead = distance(parsed.psn, r.expected);
  if (ahead < 0) {
    ++core_.counters.duplicates;
    return;
  }
  if (!r.selective) {
    if (ahead > 0) ++core_.counters.out_of_sequence;
    if (r.nak_sent) return;
    r.nak_sent = true;
    ++core_.counters.naks_sent;
    acknowledge(qp, r.expected, wire::Aeth::nak(r.msn, wire::NakCode::psn_sequence_error), false);
    return;
  }
  SelectiveReceive& s = qp.selective->receive;
  if (ahead >= s.window()) {
    ++core_.counters.beyond_window;
    return;
  }
  if (s.has(parsed.psn)) {
    ++core_.counters.duplicates;
    return;
  }
  note_arrival(qp, parsed, packet);
  s.trimmed = true;
  send_xack(qp, r.expected, ack_of(qp, r.msn));
}

// Bytes on the wire of the packet that an XACK says came trimmed, now lost; 0: it is known
// otherwise, or has been sent again since.
std::uint64_t RequesterPart::take_trim(QueuePair& qp, Psn psn) {
  const RequesterState& r = qp.requester;
  SelectiveSend& s = qp.selective->send;
  if (before(psn, r.una_psn) || !before(psn, r.next_psn) ||
      distance(psn, r.una_psn) >= s.window()) {
    return 0;
  }
  const SentPacket& sent = s.at(psn);
  if (!sent.has(sent_flag::in_flight)) return 0;
  const std::uint64_t bytes = sent.wire_bytes;
  ++core_.counters.trim_losses;
  mark_lost(qp, psn);
  return bytes;
}

// What is left of it has overtaken responses that came through: only this one is asked for. Under
// go-back-N the next response shows the gap.
void RequesterPart::on_trimmed_response(QueuePair& qp, Psn psn) {
  const RequesterState& r = qp.requester;
  if (!r.selective || !can_send(qp.state)) return;
  SelectiveSend& s = qp.selective->send;
  if (before(psn, r.una_psn) || !before(psn, r.max_psn) || distance(psn, r.una_psn) >= s.window()) {
    return;
  }
  const std::uint32_t position = position_of(qp, psn);
  if (position == r.queue.tail()) return;
  const SendEntry& entry = r.queue.at(position);
  if (entry.request.opcode != WorkOpcode::read || s.at(psn).has(sent_flag::delivered)) return;
  // Before the peer has the request there can be no response to it.
  if (!before(psn, s.peer_expected)) return;
  ask(qp, psn);
  core_.actions.settle(qp);
}

}  // namespace paceline::transport
