#include "dataplane/transport/receive_path.h"

#include "dataplane/transport/message/ack_progress.h"
#include "dataplane/transport/message/notification_point.h"
#include "dataplane/transport/selective/answer_repair.h"
#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/extensions/trim.h"
#include "dataplane/wire/packet/icrc.h"

namespace paceline::transport {

void ReceivePath::take(Packet* packet) {
  ++core_.counters.rx_packets;
  core_.counters.rx_wire_bytes += packet->wire_bytes;
  if ((packet->flags & (packet_flag::corrupt | packet_flag::trimmed)) != 0) [[unlikely]] {
    if ((packet->flags & packet_flag::corrupt) != 0) {
      core_.count_malformed(wire::ParseError::corrupt);
    } else {
      receive_trimmed(*packet);
    }
    core_.pool.free(packet);
    return;
  }
  wire::ParsedPacket parsed;
  // If no bit can flip, no ICRC needs checking.
  const wire::ParseOptions options{!core_.info.computes_icrc, false};
  wire::ParseError error =
      wire::parse_brief(packet->header_view(), packet->payload_bytes, options, parsed);
  if (error == wire::ParseError::ok && !core_.info.computes_icrc &&
      packet->icrc != wire::icrc(packet->header_view(), parsed.l3_offset, packet->payload_view())) {
    error = wire::ParseError::bad_icrc;
  }
  if (error != wire::ParseError::ok) {
    core_.count_malformed(error);
    core_.pool.free(packet);
    return;
  }
  if (parsed.properties.is_control()) {
    grants_.count_unaccounted(packet->wire_bytes);
    receive_control(parsed, *packet);
    core_.pool.free(packet);
    return;
  }
  QueuePair* qp = core_.find_qp(parsed.dest_qpn);
  if (qp == nullptr || !from_peer(*qp, parsed)) {
    if (qp == nullptr && parsed.dest_qpn == kManagementQpNumber) {
      qp = core_.find_qp(core_.management_qp);
    }
    if (qp != nullptr && qp->config.type == QpType::ud) {
      receive_datagram(*qp, parsed, packet);
      return;
    }
    ++core_.counters.no_queue_pair;
    grants_.count_unaccounted(packet->wire_bytes);
    core_.pool.free(packet);
    return;
  }
  switch (parsed.properties.operation) {
    case wire::Operation::send:
    case wire::Operation::write:
    case wire::Operation::read_request:
    case wire::Operation::compare_swap:
    case wire::Operation::fetch_add:
      count_data(*qp, parsed, *packet);
      if (parsed.properties.service != qp->requests) break;
      responder_.on_request(*qp, parsed, packet);
      return;  // the responder has the packet
    case wire::Operation::read_response:
      count_data(*qp, parsed, *packet);
      if (parsed.properties.service != qp->responses) break;
      if (parsed.ecn == Ecn::ce) NotificationPoint::on_marked(core_, *qp);
      requester_.on_response(*qp, parsed, packet);
      return;
    case wire::Operation::atomic_acknowledge:
      grants_.count_unaccounted(packet->wire_bytes);
      if (parsed.properties.service != qp->responses) break;
      ++core_.counters.acks_received;
      ++core_.counters.atomic_answers;
      requester_.on_response(*qp, parsed, packet);
      return;
    case wire::Operation::acknowledge:
      grants_.count_unaccounted(packet->wire_bytes);
      if (parsed.properties.service != qp->responses) [[unlikely]] {
        if (parsed.properties.service != wire::Service::xrc ||
            !ends_target(*qp, parsed.ext.aeth, parsed.psn)) {
          break;
        }
        core_.pool.free(packet);
        return;
      }
      ++core_.counters.acks_received;
      if (requester_.holds_answers(*qp)) {
        requester_.hold(*qp, packet);
        return;
      }
      requester_.on_acknowledge(*qp, parsed);
      core_.pool.free(packet);
      return;
    case wire::Operation::xack: {
      grants_.count_unaccounted(packet->wire_bytes);
      wire::Xack xack;
      error = wire::parse_xack(wire::xack_body(packet->header_view(), parsed), xack);
      if (error != wire::ParseError::ok) {
        core_.count_malformed(error);
        core_.pool.free(packet);
        return;
      }
      if (qp->responses == wire::Service::none) {
        if (!ends_target(*qp, xack.aeth, parsed.psn)) break;
        core_.pool.free(packet);
        return;
      }
      ++core_.counters.acks_received;
      if (requester_.holds_answers(*qp)) {
        requester_.hold(*qp, packet);
        return;
      }
      if (requester_.on_xack(*qp, parsed, xack)) {
        congestion_.perform();
        requester_.on_gap(*qp, parsed);
      }
      core_.pool.free(packet);
      return;
    }
    case wire::Operation::cnp:
      grants_.count_unaccounted(packet->wire_bytes);
      AckProgress::on_cnp(core_, *qp);
      core_.pool.free(packet);
      return;
    default:
      grants_.count_unaccounted(packet->wire_bytes);
      break;
  }
  ++core_.counters.unsupported_operations;
  core_.pool.free(packet);
}

// IPv4, the usual case, needs nothing but the queue pair.
bool ReceivePath::from_peer(const QueuePair& qp, const wire::ParsedPacket& parsed) const {
  if (!parsed.ipv6 && qp.peer_v4 != 0) return parsed.source.v4_value() == qp.peer_v4;
  return qp.peer != kNoIndex && core_.peers[qp.peer].ip == parsed.source;
}

// An XRC target sends no requests. It accepts one acknowledgement: the NAK that says that its
// initiator is gone.
bool ReceivePath::ends_target(QueuePair& qp, wire::Aeth aeth, Psn psn) {
  if (qp.config.type != QpType::xrc_target || !can_send(qp.state) ||
      !AckProgress::on_disconnect_nak(core_, qp, aeth, psn)) {
    return false;
  }
  ++core_.counters.acks_received;
  return true;
}

// A packet for a UD queue pair, from any sender.
void ReceivePath::receive_datagram(QueuePair& qp, const wire::ParsedPacket& parsed,
                                   Packet* packet) {
  const std::uint32_t peer =
      core_.peers.find(parsed.source, wire::kDefaultDscpMap.traffic_class(parsed.dscp));
  if (parsed.properties.service == wire::Service::ud) {
    grants_.count_data(peer == kNoIndex ? nullptr : core_.peers[peer].counters, parsed, *packet);
    responder_.on_request(qp, parsed, packet);
    return;
  }
  grants_.count_unaccounted(packet->wire_bytes);
  if (parsed.properties.operation == wire::Operation::cnp) {
    congestion_.on_datagram_cnp(parsed.source);
  } else {
    ++core_.counters.unsupported_operations;
  }
  core_.pool.free(packet);
}

// Data for a connected queue pair.
void ReceivePath::count_data(const QueuePair& qp, const wire::ParsedPacket& parsed,
                             const Packet& packet) {
  grants_.count_data(core_.peers[qp.peer].counters, parsed, packet);
}

// The time is that of the poll, except for measurements, which end when the packet arrived.
void ReceivePath::receive_stamped(std::span<Packet* const> burst) {
  for (Packet* const packet : burst) {
    core_.arrived = packet->time;
    core_.stamped = core_.arrived.count > 0 && core_.arrived < core_.now;
    receive(packet);
  }
  core_.stamped = false;
}

// The caller frees the packet.
void ReceivePath::receive_trimmed(const Packet& packet) {
  wire::ParsedPacket parsed;
  const wire::ParseError error = wire::parse_trimmed(packet.header_view(), parsed);
  if (error != wire::ParseError::ok) {
    core_.count_malformed(error);
    return;
  }
  QueuePair* qp = core_.find_qp(parsed.dest_qpn);
  if (qp == nullptr || !from_peer(*qp, parsed)) {
    ++core_.counters.no_queue_pair;
    grants_.count_unaccounted(packet.wire_bytes);
    return;
  }
  ++core_.counters.rx_trimmed;
  const std::uint32_t cut = core_.info.wire.wire_bytes(packet.frame_bytes() + parsed.padded_bytes(),
                                                       parsed.padded_bytes()) -
                            packet.wire_bytes;
  core_.trimmed_bytes += cut;
  if (qp->config.type == QpType::ud) {
    grants_.count_unaccounted(packet.wire_bytes);
  } else {
    count_data(*qp, parsed, packet);
    if (cc::ChannelCounters* channel = core_.peers[qp->peer].counters)
      channel->trimmed_bytes += cut;
  }
  if (qp->unreliable) {
    ++core_.counters.unreliable_drops;
  } else if (parsed.properties.operation == wire::Operation::read_response) {
    if (parsed.ecn == Ecn::ce) NotificationPoint::on_marked(core_, *qp);
    AnswerRepair::on_trimmed(core_, *qp, parsed.psn);
  } else {
    responder_.on_trimmed(*qp, parsed, packet);
  }
}

void ReceivePath::receive_control(const wire::ParsedPacket& parsed, const Packet& packet) {
  if (parsed.properties.operation ==
      wire::Operation::notice) {  // of a switch, whatever peers speak
    NoticeMessage notice;
    const wire::ParseError error =
        wire::parse_control(wire::control_body(packet.header_view(), parsed), notice);
    if (error == wire::ParseError::ok) {
      congestion_.on_notice(parsed.source, notice);
    } else {
      core_.count_malformed(error);
    }
    return;
  }
  if (!core_.config.speak_control) {
    ++core_.counters.control_ignored;
    return;
  }
  const auto body = wire::control_body(packet.header_view(), parsed);
  wire::ParseError error = wire::ParseError::ok;
  switch (parsed.properties.operation) {
    case wire::Operation::hello:
      if (const auto news = peers_.on_hello(parsed, packet)) migration_.adopt_peer(*news);
      return;
    case wire::Operation::request: {
      RequestMessage request;
      error = wire::parse_control(body, request);
      if (error != wire::ParseError::ok) break;
      ++core_.counters.requests_received;
      grants_.on_request(parsed, request);
      return;
    }
    case wire::Operation::grant: {
      GrantMessage grant;
      error = wire::parse_control(body, grant);
      if (error != wire::ParseError::ok) break;
      ++core_.counters.grants_received;
      const std::uint32_t context =
          grants_.context_of(parsed.source, grant.traffic_class, grant.channel);
      if (context == kNoIndex) return;
      cc::Event event;
      event.signal = cc::Signal::grant;
      event.grant = &grant;
      congestion_.deliver(context, event);
      return;
    }
    default:
      error = wire::ParseError::unknown_opcode;
      break;
  }
  core_.count_malformed(error);
}

}  // namespace paceline::transport
