#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

void EngineCore::count_by_cluster(std::uint32_t peer, std::uint64_t ClusterPackets::*which) {
  const std::uint8_t cluster = peers[peer].cluster;
  if (cluster < packets_to->size()) ++((*packets_to)[cluster].*which);
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
