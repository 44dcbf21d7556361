// What becomes of packets that arrive: each is accepted, held for its turn, or counted by the
// reason why it is not delivered (telemetry::for_each_undelivered). Requests are counted where they
// are refused; here are responses, and the sum that must come out.
#include <string>

#include "dataplane/transport/engine.h"

namespace paceline::transport {

namespace {

bool is_response(const Packet& packet) {
  wire::ParsedPacket parsed;
  if (wire::parse_brief(packet.header_view(), packet.payload_bytes, {}, parsed) !=
      wire::ParseError::ok) {
    return false;
  }
  return parsed.properties.operation == wire::Operation::read_response ||
         parsed.properties.operation == wire::Operation::atomic_acknowledge;
}

std::uint64_t responses_in(const PacketFifo& fifo) {
  std::uint64_t count = 0;
  for (const Packet* p = fifo.head; p != nullptr; p = p->next) count += is_response(*p) ? 1 : 0;
  return count;
}

std::uint64_t packets_in(const PacketFifo& fifo) {
  std::uint64_t count = 0;
  for (const Packet* p = fifo.head; p != nullptr; p = p->next) ++count;
  return count;
}

}  // namespace

RequesterPart::Outcome RequesterPart::take_in(QueuePair& qp, const wire::ParsedPacket& parsed,
                                              const Packet& packet) {
  const std::uint64_t taken = core_.counters.rx_data_packets;
  const bool could_send = can_send(qp.state);
  const Outcome outcome = qp.requester.selective ? accept_selective_response(qp, parsed, packet)
                                                 : accept_response(qp, parsed, packet);
  if (outcome == Outcome::done && core_.counters.rx_data_packets == taken) [[unlikely]] {
    count_untaken(qp, parsed.psn, could_send);
  }
  return outcome;
}

void RequesterPart::count_untaken(const QueuePair& qp, Psn psn, bool could_send) {
  const RequesterState& r = qp.requester;
  telemetry::EngineCounters& c = core_.counters;
  if (!could_send) {
    ++c.wrong_state;
  } else if (!can_send(qp.state)) {
    ++c.dropped_bad_response;
  } else if (before(psn, r.una_psn) || !before(psn, r.max_psn)) {
    ++c.dropped_stale;
  } else if (r.selective) {
    const bool beyond = distance(psn, r.una_psn) >= qp.selective->send.window();
    ++(beyond ? c.dropped_gap : c.dropped_stale);
  } else {
    // Where a READ is not answered up to here, one of its responses is missing.
    ++(r.gap_known ? c.dropped_gap : c.dropped_stale);
  }
}

// Frees nothing. Acknowledgements that waited behind responses are counted already.
void RequesterPart::count_discarded(const Packet& packet) {
  if (is_response(packet)) ++core_.counters.wrong_state;
}

std::string Engine::check_arrivals() const {
  std::uint64_t held = 0;
  for (const QueuePair* qp : core_.qps) {
    if (qp == nullptr) continue;
    held += packets_in(qp->responder.parked) + responses_in(qp->requester.parked);
    if (qp->selective == nullptr) continue;
    for (const Packet* packet : qp->selective->receive.held) held += packet != nullptr ? 1 : 0;
  }
  const telemetry::EngineCounters& c = core_.counters;
  const std::uint64_t known = packets_accounted(c, core_.config.speak_control) + held;
  if (c.rx_packets == known) return {};
  return std::to_string(c.rx_packets) + " packets arrived, " + std::to_string(known) +
         " are delivered, held or in a counter of those that are not";
}

}  // namespace paceline::transport
