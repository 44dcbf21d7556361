#include "dataplane/transport/message/notification_point.h"

#include "dataplane/wire/headers/dscp.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

namespace {

std::uint8_t class_of(const wire::ParsedPacket& parsed) {
  return wire::kDefaultDscpMap.traffic_class(parsed.dscp);
}

}  // namespace

// Only the packet tells who its sender is; we may never send anything to that host.
void NotificationPoint::on_marked_datagram(EngineCore& core, QueuePair& qp,
                                           const wire::ParsedPacket& parsed, const Packet& packet) {
  ++core.counters.rx_ce_packets;
  if (core.config.cnp_in_ack) return;
  const std::uint32_t index = core.peers.find(parsed.source, class_of(parsed));
  if (index != kNoIndex && core.peers[index].echo != EcnEcho::cnp) return;
  const std::uint64_t flow = wire::hash_value(parsed.source) +
                             (std::uint64_t{parsed.ext.deth.source_qpn} << 32) + qp.number;
  LastDatagramCnp& mark =
      core.last_datagram_cnps[wire::mix64(flow) % core.last_datagram_cnps.size()];
  if (mark.last.count >= 0 && core.now - mark.last < core.config.cnp_interval) return;
  Packet* cnp = core.alloc_headers_only();
  if (cnp == nullptr) return;
  mark.last = core.now;
  QpPath path;
  path.ip = parsed.source;
  path.mac = wire::MacAddress::load(packet.header.data() + 6);
  path.traffic_class = kControlClass;
  wire::FlowAddressing flow_back = core.flow_to(path);
  flow_back.ecn = Ecn::not_ect;
  const wire::HeaderTemplate header = wire::make_header_template(flow_back);
  cnp->header_bytes = static_cast<std::uint16_t>(
      wire::build_cnp(header, wire::HeaderBuffer{cnp->header}, parsed.ext.deth.source_qpn));
  cnp->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  ++core.counters.cnps_sent;
  ++qp.counters.cnps_sent;
  core.queue_control(cnp);
}

void NotificationPoint::on_marked(EngineCore& core, QueuePair& qp) {
  ResponderState& r = qp.responder;
  ++core.counters.rx_ce_packets;
  if (core.config.cnp_in_ack) return;
  if (core.peers[qp.peer].echo != EcnEcho::cnp) return;
  if (r.last_cnp.count >= 0 && core.now - r.last_cnp < core.config.cnp_interval) return;
  Packet* packet = core.alloc_headers_only();
  if (packet == nullptr) return;
  r.last_cnp = core.now;
  const wire::HeaderTemplate& header = core.peers[qp.peer].control;
  packet->header_bytes = static_cast<std::uint16_t>(
      wire::build_cnp(header, wire::HeaderBuffer{packet->header}, qp.remote_number));
  packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  ++core.counters.cnps_sent;
  ++qp.counters.cnps_sent;
  core.queue_control(packet);
}

}  // namespace paceline::transport
