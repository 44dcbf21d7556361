#include "dataplane/transport/message/packet_class.h"

#include "cc/dispatch.h"
#include "dataplane/wire/headers/dscp.h"
#include "dataplane/wire/packet/patch.h"

namespace paceline::transport {

std::uint8_t PacketClass::of_next(const EngineCore& core, const QueuePair& qp,
                                  const CongestionContext& context) {
  const RequesterState& r = qp.requester;
  if (r.repair) return qp.sent_class;
  const SendEntry& entry = r.queue.at(r.position.request());
  // READs and atomics are requested in a packet without payload: they count as short as any
  // message.
  const std::uint64_t bytes = entry.has_response ? 0 : entry.request.length;
  const std::uint64_t offset = entry.has_response ? 0 : std::uint64_t{r.position.packet()} * qp.mtu;
  std::uint8_t wanted = cc::packet_class(context.algorithm, context.state.data(),
                                         core.params_of(context), bytes, offset);
  if (wanted >= kControlClass) wanted = context.traffic_class;
  const bool under_way = r.position.oldest() != r.position.end();
  return under_way && wanted > qp.sent_class ? qp.sent_class : wanted;
}

void PacketClass::put(QueuePair& qp, Packet& packet, std::uint8_t traffic_class) {
  qp.sent_class = traffic_class;
  if (packet.traffic_class == traffic_class) return;
  packet.traffic_class = traffic_class;
  // An ICRC that is already there does not cover this field.
  wire::patch_dscp(packet.header_view(), wire::kDefaultDscpMap.dscp(traffic_class));
}

}  // namespace paceline::transport
