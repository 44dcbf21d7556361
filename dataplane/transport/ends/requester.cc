#include "dataplane/transport/ends/requester.h"

#include <algorithm>
#include <cstring>

#include "dataplane/transport/datagram/datagram.h"
#include "dataplane/transport/datagram/unreliable_connection.h"
#include "dataplane/transport/message/ack_progress.h"
#include "dataplane/transport/message/packet_builder.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/request_order.h"
#include "dataplane/transport/message/requester_timer.h"
#include "dataplane/transport/message/scatter_gather.h"
#include "dataplane/transport/message/scoreboard.h"
#include "dataplane/transport/message/send_window.h"
#include "dataplane/transport/read/read_requester.h"
#include "dataplane/transport/selective/selective_sender.h"
#include "dataplane/wire/extensions/xack.h"

namespace paceline::transport {

namespace {

// Nothing can follow this answer: the peer's queue pair is in error.
bool is_fatal(wire::Aeth aeth) {
  return aeth.kind() == wire::AethKind::nak && aeth.nak_code() != wire::NakCode::psn_sequence_error;
}

// Go-back-N: everything from the oldest packet on is sent again, and the algorithm is told why.
// False: no retry was left, and the queue pair has failed.
bool go_back(EngineCore& core, QueuePair& qp, cc::Signal signal, std::uint64_t acked) {
  if (!qp.requester.retries.spend()) {
    QpFailure::fail(core, qp, CompletionStatus::retry_exceeded);
    return false;
  }
  const std::uint64_t lost = SendWindow::rewind(core, qp);
  core.actions.resume(qp);
  cc::Event& event = core.actions.deliver(qp.context);
  event.signal = signal;
  event.lost_bytes = static_cast<std::uint32_t>(lost);
  event.acked_bytes = static_cast<std::uint32_t>(acked);
  return true;
}

}  // namespace

void Requester::on_response(QueuePair& qp, const wire::ParsedPacket& parsed, Packet* packet) {
  RequesterState& r = qp.requester;
  if (!r.parked.empty()) {
    if (!core_.may_park(r.parked_packets)) ++core_.counters.dropped_gap;
    hold(qp, packet);
    return;
  }
  const ResponseOutcome outcome = take_in(qp, parsed, *packet);
  if (outcome == ResponseOutcome::pending) {
    r.response_waits = true;
    ++core_.counters.memory_waits;
    core_.park(r, packet);
    return;
  }
  core_.pool.free(packet);
}

void Requester::hold(QueuePair& qp, Packet* packet) {
  if (core_.may_park(qp.requester.parked_packets)) return core_.park(qp.requester, packet);
  core_.pool.free(packet);
}

void Requester::memory_ready(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (r.response_waits) {
    r.response_waits = false;
    while (!r.parked.empty()) {
      Packet* packet = r.parked.head;
      wire::ParsedPacket parsed;
      const wire::ParseError error =
          wire::parse_brief(packet->header_view(), packet->payload_bytes, {}, parsed);
      if (error == wire::ParseError::ok && qp.state != QpState::error) {
        if (parsed.properties.operation == wire::Operation::acknowledge) {
          on_acknowledge(qp, parsed);
        } else if (parsed.properties.operation == wire::Operation::xack) {
          wire::Xack xack;
          const auto body = wire::xack_body(packet->header_view(), parsed);
          if (wire::parse_xack(body, xack) == wire::ParseError::ok && on_xack(qp, parsed, xack))
            on_gap(qp, parsed);
        } else if (take_in(qp, parsed, *packet) == ResponseOutcome::pending) {
          r.response_waits = true;
          break;  // it stays the first of the parked packets
        }
      } else {
        ReadRequester::count_discarded(core_, *packet);
      }
      core_.pool.free(core_.unpark(qp.requester));
    }
  }
  if ((r.stops & requester_stop::memory) != 0) {
    r.stops &= static_cast<std::uint8_t>(~requester_stop::memory);
    core_.actions.resume(qp);
  }
}

void Requester::discard(QueuePair& qp) {
  for (; !qp.requester.parked.empty(); core_.pool.free(core_.unpark(qp.requester))) {
    ReadRequester::count_discarded(core_, *qp.requester.parked.head);
  }
  qp.requester.response_waits = false;
}

ResponseOutcome Requester::take_in(QueuePair& qp, const wire::ParsedPacket& parsed,
                                   const Packet& packet) {
  const std::uint64_t taken = core_.counters.rx_data_packets;
  const bool could_send = can_send(qp.state);
  const ResponseOutcome outcome = qp.requester.selective
                                      ? SelectiveSender::accept_response(core_, qp, parsed, packet)
                                      : ReadRequester::accept(core_, qp, parsed, packet);
  if (outcome == ResponseOutcome::done && core_.counters.rx_data_packets == taken) [[unlikely]] {
    ReadRequester::count_untaken(core_, qp, parsed.psn, could_send);
  }
  return outcome;
}

void Requester::on_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed) {
  RequesterState& r = qp.requester;
  if (!can_send(qp.state)) return;
  if (!parsed.ext.aeth.is_ack() &&
      AckProgress::on_disconnect_nak(core_, qp, parsed.ext.aeth, parsed.psn))
    return;
  if (r.selective) [[unlikely]] {
    SelectiveSender::on_acknowledge(core_, qp, parsed);
    return;
  }
  const wire::Aeth aeth = parsed.ext.aeth;
  const bool is_ack = aeth.kind() == wire::AethKind::ack;
  // An ACK covers its own PSN; a NAK names the first packet that is missing (or refused).
  const Psn next = is_ack ? parsed.psn + 1 : parsed.psn;
  if (before(next, r.position.oldest()) || before(r.position.end(), next)) {
    ++core_.counters.stale_acks;
    return;
  }
  if (parsed.becn) {
    ++core_.counters.becns_received;
    AckProgress::on_cnp(core_, qp);
  }
  if (is_ack) RequestOrder::on_credits(core_, qp, aeth);
  // This says nothing new: an ACK repeats an earlier one, or a NAK names a packet that was not sent
  // yet, or that is about to be sent again because of an earlier NAK or a timeout.
  const bool repeats =
      next == r.position.oldest() && (is_ack || r.position.next() == r.position.oldest());
  if (repeats || (!is_ack && next == r.position.end())) {
    ++core_.counters.stale_acks;
    return;
  }
  std::uint32_t rtt_ns = 0;
  if (r.probe.answered(next)) {
    rtt_ns = AckProgress::sample_rtt(core_, r.probe.sent_at());
    if (rtt_ns != 0) r.round_trip.add(rtt_ns);
  }
  // A request that expects a response is complete only with its last response. An acknowledgement
  // of a later request says that responses were lost (9.7.5.1.1).
  bool lost = false;
  Psn end = next;
  if (r.ordering_constraints != 0) {
    if (const SendEntry* entry = SendWindow::unanswered_before(qp, next)) {
      lost = true;
      end = before(entry->first_psn, r.position.oldest()) ? r.position.oldest() : entry->first_psn;
    }
  }
  std::uint64_t acked = 0;
  if (end != r.position.oldest()) acked = AckProgress::progress(core_, qp, end);
  if (lost && !is_fatal(aeth)) {
    AckProgress::report_ack(core_, qp, acked, 0);
    ReadRequester::answers_lost(core_, qp);
    return;
  }
  if (is_ack) {
    AckProgress::report_ack(core_, qp, acked, rtt_ns);
    return;
  }

  if (aeth.kind() == wire::AethKind::rnr_nak) {
    ++core_.counters.rnr_received;
    ++qp.counters.rnr_received;
    if (!r.retries.spend_rnr()) {
      QpFailure::fail(core_, qp, CompletionStatus::rnr_retry_exceeded);
      return;
    }
    // Everything before this packet has arrived, and so has the packet: nothing is being lost. Some
    // responders (Linux soft-RoCE) add a sequence NAK for each packet behind it. NAKs that come
    // during the next try must not add up to a dead path.
    r.retries.renew_retries(qp.config.retry_count);
    SendWindow::rewind(core_, qp);
    r.timeout_at = kNever;
    r.blocked_until = core_.now + wire::rnr_timer(aeth.value());
    core_.actions.settle(qp);
    core_.actions.released(qp.context);  // others of the context may use its window
    RequesterTimer::set(core_, qp, r.blocked_until);
    return;
  }
  if (is_fatal(aeth)) {
    ++core_.counters.error_naks_received;
    QpFailure::fail(core_, qp, AckProgress::status_of(aeth.nak_code()), parsed.psn);
    return;
  }
  ++core_.counters.naks_received;
  ++qp.counters.naks_received;
  go_back(core_, qp, cc::Signal::nack, acked);
}

void Requester::on_timer(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (!can_send(qp.state)) return;
  if (r.selective) [[unlikely]] {
    SelectiveSender::on_timer(core_, qp);
    return;
  }
  if (r.blocked_until > core_.now) {
    RequesterTimer::set(core_, qp, r.blocked_until);
    return;
  }
  if (r.timeout_at > core_.awake()) {
    if (r.timeout_at != kNever) RequesterTimer::set(core_, qp, core_.awake_to_time(r.timeout_at));
    core_.actions.resume_and_report(qp);  // an RNR back-off may have ended
    return;
  }
  r.timeout_at = kNever;
  if (r.inflight_bytes == 0) return;
  if (r.response_waits) {  // the answer is here; our own memory is late
    RequesterTimer::arm(core_, qp);
    return;
  }
  ++core_.counters.timeouts;
  ++qp.counters.timeouts;
  if (core_.config.planes > 1) core_.change_plane(qp);
  if (go_back(core_, qp, cc::Signal::timeout, 0)) r.gap_known = false;
}

// Copies what the request refers to into the place of the queue that it will have. Only that place,
// which is free, changes.
PostResult Requester::keep_source(QueuePair& qp, const WorkRequest& posted, QueuedRequest& kept) {
  RequesterState& r = qp.requester;
  if (r.queue.full()) return PostResult::queue_full;
  const std::size_t place = r.queue.tail() & (r.queue.capacity() - 1);
  if (posted.inline_bytes != nullptr) {
    if (expects_response(posted.opcode)) return PostResult::bad_opcode;
    // Where payloads are elided, there is no buffer for the bytes.
    const std::uint32_t most = core_.info.payload_room == 0 ? 0 : qp.config.max_inline;
    if (posted.length > most) return PostResult::bad_length;
    if (posted.length != 0) {
      std::memcpy(&r.inline_bytes[place * qp.config.max_inline], posted.inline_bytes,
                  posted.length);
    }
    kept.inlined = true;
    kept.segment_count = 0;
    return PostResult::ok;
  }
  if (posted.segment_count > qp.config.max_send_segments) return PostResult::too_many_segments;
  kept.length = 0;
  for (unsigned i = 0; i < posted.segment_count; ++i) kept.length += posted.segments[i].length;
  if (posted.segment_count == 1) {
    kept.local_address = posted.segments[0].address;
    kept.local_key = posted.segments[0].key;
    kept.segment_count = 0;
    return PostResult::ok;
  }
  if (is_atomic(posted.opcode)) return PostResult::bad_length;  // its result is in one place
  std::copy_n(posted.segments, posted.segment_count,
              &r.segments[place * qp.config.max_send_segments]);
  return PostResult::ok;
}

PostResult Requester::post(QueuePair& qp, const WorkRequest& posted) {
  if (qp.state == QpState::error || qp.state == QpState::sqe) {
    core_.complete_send(qp, posted, CompletionStatus::flushed);
    return PostResult::ok;
  }
  if (!can_send(qp.state)) return PostResult::bad_state;
  if (posted.segment_count != 0 || posted.inline_bytes != nullptr) {
    QueuedRequest kept = static_cast<const QueuedRequest&>(posted);
    const PostResult result = keep_source(qp, posted, kept);
    return result == PostResult::ok ? post_kept(qp, kept) : result;
  }
  return post_kept(qp, posted);
}

// Segments and inline data, if any, are the queue pair's own copy.
PostResult Requester::post_kept(QueuePair& qp, const QueuedRequest& request) {
  RequesterState& r = qp.requester;
  const bool answered = expects_response(request.opcode);
  if (answered && qp.config.max_rd_atomic == 0) return PostResult::bad_opcode;
  if (qp.config.type == QpType::xrc_target) return PostResult::bad_opcode;
  if (qp.config.type == QpType::xrc_initiator && request.target_srq > DomainQueues::kMostNumber)
    return PostResult::bad_target;
  if (qp.unreliable) {
    if (const PostResult result = UnreliableConnection::check(core_, qp, request);
        result != PostResult::ok) {
      return result;
    }
  }
  if (is_atomic(request.opcode) ? request.length != kAtomicBytes
                                : request.length > kMaxMessageBytes) {
    return PostResult::bad_length;
  }
  const std::uint64_t mtu = qp.mtu;
  const auto packets =
      static_cast<std::uint32_t>(std::max<std::uint64_t>(1, (request.length + mtu - 1) / mtu));
  // All PSNs in flight must stay comparable (vol. 1, 9.7.2).
  constexpr std::int32_t kWindow = 1 << 23;
  if (packets >= kWindow) return PostResult::bad_length;
  if (r.queue.full()) return PostResult::queue_full;
  if (request.segment_count != 0) {
    const std::uint8_t needed = answered ? access::local_write : access::local_read;
    if (!segments_granted(
            core_.regions,
            PacketBuilder::segments_of(qp, r.queue.tail()).first(request.segment_count),
            qp.config.pd, needed)) {
      return PostResult::bad_key;
    }
  } else if (request.length != 0 && !request.inlined) {
    const Region* region = core_.regions.find(request.local_key);
    const std::uint8_t needed = answered ? access::local_write : access::local_read;
    if (region == nullptr ||
        !region->grants(qp.config.pd, needed, request.local_address, request.length)) {
      return PostResult::bad_key;
    }
  }
  if (distance(r.tail_psn, r.position.oldest()) + static_cast<std::int32_t>(packets) >= kWindow) {
    return PostResult::queue_full;
  }
  r.ssn = next_msn(r.ssn);
  if (r.queue.empty() && qp.selective != nullptr && !r.selective) Scoreboard::begin(core_, qp);
  std::uint8_t form = r.selective && is_write(request.opcode) ? entry_form::split : std::uint8_t{0};
  if (qp.config.type == QpType::xrc_initiator) form |= entry_form::names_queue;
  r.queue.push({r.tail_psn, packets, r.ssn, answered, form, request});
  r.tail_psn = r.tail_psn + packets;
  if (answered || request.fence) ++r.ordering_constraints;
  if (r.ordering_constraints != 0) RequestOrder::check(qp);
  if (answered && r.selective) Scoreboard::update_window(qp);
  if (answered) return PostResult::ok;  // the peer sends its data
  if (qp.config.type == QpType::ud) ++core_.handles[request.address_handle >> 8].uses;
  r.backlog_bytes += request.length;
  core_.contexts[Datagram::context_of(core_, qp, request)].backlog_bytes += request.length;
  return PostResult::ok;
}

std::uint32_t Requester::next_wire_bytes(const EngineCore& core, const QueuePair& qp) {
  const RequesterState& r = qp.requester;
  if (r.repair) [[unlikely]]
    return SelectiveSender::next_wire_bytes(core, qp);
  return SendWindow::wire_of(core, qp, r.queue.at(r.position.request()), r.position.packet());
}

// Whether a packet that does not end its message asks for an ACK. Every ack_every-th packet does.
// So does a packet after which waiting for that one could last until the timer: when it fills the
// window, or when pacing is so slow that a good part of the timeout has passed since the last
// request.
bool Requester::wants_ack(QueuePair& qp) const {
  RequesterState& r = qp.requester;
  if (r.ack_requests.due(core_.config.ack_every)) return true;
  const CongestionContext& context = core_.contexts[qp.context];
  const std::uint64_t filled = context.inflight_bytes + next_wire_bytes(core_, qp);
  if (filled >= context.decision.window_bytes) return true;
  return core_.now - r.ack_requests.asked_at() >= qp.config.retransmit_timeout / 4;
}

bool Requester::build_next(QueuePair& qp, Packet& packet) {
  RequesterState& r = qp.requester;
  if (r.selective) [[unlikely]] {
    wire::set_source_port(qp.header, core_.next_path(*qp.selective));
    if (r.repair) return SelectiveSender::build_repair(core_, qp, packet);
  }
  const SendEntry& entry = r.queue.at(r.position.request());
  if (entry.has_response) {
    ReadRequester::build(core_, qp, packet, entry);
    return true;
  }
  if (qp.unreliable) {
    return qp.config.type == QpType::uc ? UnreliableConnection::build(core_, qp, packet)
                                        : Datagram::build(core_, qp, packet);
  }
  const std::uint32_t index = r.position.packet();
  const std::uint64_t offset = std::uint64_t{index} * qp.mtu;
  const std::uint32_t payload = SendWindow::payload_of(qp, entry, index);
  const bool last = index + 1 == entry.packets;
  if (!PacketBuilder::fill_payload(core_, qp, packet, r.position.request(), offset, payload))
    return false;
  const bool ack_request = last || wants_ack(qp) || RequestOrder::beyond_credits(r, entry) > 0;
  PacketBuilder::build_data(core_, qp, packet, entry, index, r.position.next(), payload,
                            ack_request);

  if (ack_request) {
    r.ack_requests.asked(core_.now);
    if (!r.probe.active() && r.position.next() == r.position.end())
      r.probe.start(r.position.next(), core_.now);
  }
  if (r.position.sent(last)) {
    core_.count_data(qp.peer);
    core_.counters.tx_data_bytes += payload;
  } else {
    core_.count_retransmitted(qp);
    core_.counters.retransmitted_bytes += payload;
  }
  if (r.ordering_constraints != 0) RequestOrder::check(qp);
  if (r.inflight_bytes == 0 && !r.selective) RequesterTimer::arm(core_, qp);
  if (r.selective) [[unlikely]] {
    PacketBuilder::want_telemetry(core_, qp, packet);
    Scoreboard::note_sent(core_, qp, r.position.next() - 1, packet.wire_bytes, payload, false);
  }
  r.inflight_bytes += packet.wire_bytes;
  core_.take_backlog(qp, payload);
  return true;
}

bool Requester::on_xack(QueuePair& qp, const wire::ParsedPacket& parsed, const wire::Xack& xack) {
  if (!can_send(qp.state)) return false;
  if (!xack.aeth.is_ack() && AckProgress::on_disconnect_nak(core_, qp, xack.aeth, parsed.psn))
    return false;
  qp.requester.peer_selective = true;
  if (!qp.requester.selective) {
    RequestOrder::turn_selective(core_, qp);
    return !qp.requester.selective && take_as_acknowledge(qp, parsed, xack);
  }
  SelectiveSender::on_xack(core_, qp, parsed.psn, xack);
  return false;
}

// Under go-back-N: what the XACK says about the expected packet. True: there is also a gap. An XACK
// overtakes responses, and so says nothing about them.
bool Requester::take_as_acknowledge(QueuePair& qp, const wire::ParsedPacket& parsed,
                                    const wire::Xack& xack) {
  wire::ParsedPacket plain = parsed;
  plain.ext.aeth = xack.aeth;
  if (xack.aeth.is_ack()) {
    Psn next = parsed.psn;
    if (const SendEntry* entry = SendWindow::unanswered_before(qp, next)) {
      const Psn oldest = qp.requester.position.oldest();
      next = before(entry->first_psn, oldest) ? oldest : entry->first_psn;
    }
    plain.psn = next - 1;
  }
  on_acknowledge(qp, plain);
  if (!xack.aeth.is_ack() || (xack.bitmap[0] | xack.bitmap[1]) == 0) return false;
  // Every packet behind the gap brings one of these; the first one counts.
  return !qp.requester.gap_known;
}

void Requester::on_gap(QueuePair& qp, const wire::ParsedPacket& parsed) {
  qp.requester.gap_known = true;
  wire::ParsedPacket plain = parsed;
  plain.ext.aeth = wire::Aeth::nak(0, wire::NakCode::psn_sequence_error);
  on_acknowledge(qp, plain);
}

}  // namespace paceline::transport
