// Queue pairs whose packets go in several traffic classes (cc::Decision::classed): which one a
// packet takes, and how it says so.
//
// A higher class overtakes a lower one in every switch. Reliable service delivers a queue pair's
// messages in order, so that its own packets gain nothing by overtaking one another: what has gone
// ahead waits at the receiver (selective repeat), or is dropped there and sent again (go-back-N).
// And a packet that has been overtaken for long looks lost to both. So a queue pair's class falls
// at once, but rises only when nothing of it is under way. Other queue pairs are free.
#include "dataplane/transport/requester.h"
#include "dataplane/wire/dscp.h"
#include "dataplane/wire/patch.h"

namespace paceline::transport {

std::uint8_t RequesterPart::class_of_next(const EngineCore& core, const QueuePair& qp,
                                          const CongestionContext& context) {
  const RequesterState& r = qp.requester;
  if (r.repair) return qp.sent_class;
  const SendEntry& entry = r.queue.at(r.cursor);
  // READs and atomics are asked for in a packet without payload: as short as any message.
  const std::uint64_t bytes = entry.answered ? 0 : entry.request.length;
  const std::uint64_t offset = entry.answered ? 0 : std::uint64_t{r.cursor_packet} * qp.mtu;
  std::uint8_t wanted = cc::packet_class(context.algorithm, context.state.data(),
                                         core.params_of(context), bytes, offset);
  if (wanted >= kControlClass) wanted = context.traffic_class;
  const bool under_way = r.una_psn != r.max_psn;
  return under_way && wanted > qp.sent_class ? qp.sent_class : wanted;
}

void RequesterPart::put_class(QueuePair& qp, Packet& packet, std::uint8_t traffic_class) {
  qp.sent_class = traffic_class;
  if (packet.traffic_class == traffic_class) return;
  packet.traffic_class = traffic_class;
  // The ICRC, if it is there already, does not cover it.
  wire::patch_dscp(packet.header_view(), wire::kDefaultDscpMap.dscp(traffic_class));
}

}  // namespace paceline::transport
