#include "dataplane/transport/core/engine_core.h"

#include "dataplane/wire/packet/patch.h"

namespace paceline::transport {

void EngineCore::count_by_cluster(std::uint32_t peer, std::uint64_t ClusterPackets::*which) {
  const std::uint8_t cluster = peers[peer].cluster;
  if (cluster < packets_to->size()) ++((*packets_to)[cluster].*which);
}

void EngineCore::finish_more(const wire::HeaderTemplate& header, std::uint32_t context,
                             Packet& packet) {
  constexpr std::uint32_t kNotice = cc::signal_bit(cc::Signal::notice);
  if (info.notices && context != kNoIndex && (contexts[context].wants & kNotice) != 0) {
    packet.ecn = Ecn::ect1;
    wire::patch_ecn(packet.header_view(), Ecn::ect1);
  }
  if (!info.computes_icrc) {
    packet.icrc = wire::icrc(packet.header_view(), header.l3_offset, packet.payload_view());
  }
}

void EngineCore::change_plane(QueuePair& qp) {
  if (qp.selective != nullptr && qp.selective->paths.size() > 1) {
    qp.selective->paths.forget();
    return;
  }
  qp.path.source_port = wire::source_port_from_entropy(qp.path.source_port + 1U);
  wire::set_source_port(qp.header, qp.path.source_port);
  if (qp.selective != nullptr) qp.selective->paths.move_to(qp.path.source_port);
}

}  // namespace paceline::transport
