#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

void EngineCore::count_by_cluster(std::uint32_t peer, std::uint64_t ClusterPackets::*which) {
  const std::uint8_t cluster = peers[peer].cluster;
  if (cluster < packets_to->size()) ++((*packets_to)[cluster].*which);
}

}  // namespace paceline::transport
