#include "dataplane/driver/traffic/reachable.h"

#include <cstdint>
#include <vector>

#include "dataplane/config/server_shape.h"

namespace paceline {

namespace {

// "host 9 (server1.nic1)"; the second name only where a server has several NICs.
std::string host_text(const config::ServerShape& shape, std::uint32_t host) {
  std::string text = "host " + std::to_string(host);
  if (shape.nics == 1) return text;
  return text + " (server" + std::to_string(shape.server_of(host)) + ".nic" +
         std::to_string(shape.rail_of(host)) + ")";
}

}  // namespace

std::string no_path_of(const config::Scenario& scenario, const fabric::FabricSpec& fabric,
                       const MessagePlan& plan) {
  const std::vector<std::uint32_t> island = fabric::islands(fabric);
  const std::uint32_t nics = fabric.nics();
  const config::ServerShape shape = config::server_shape(scenario.fabric);
  const auto connected = [&](const PlannedMessage& message) {
    if (shape.same_server(message.src, message.dst)) return true;  // by NVLink
    for (std::uint32_t port = 0; port < fabric.ports; ++port) {
      if (island[port * nics + message.src] == island[port * nics + message.dst]) return true;
    }
    return false;
  };
  for (const PlannedMessage& message : plan.messages) {
    if (message.src >= nics || message.dst >= nics || connected(message)) continue;
    std::string text = "no path from " + host_text(shape, message.src) + " to " +
                       host_text(shape, message.dst) + ", and the workload sends " +
                       std::to_string(message.bytes) + " B there";
    if (scenario.fabric.topology == "rail") {
      text += ": with fabric.cores = 0 rails " + std::to_string(shape.rail_of(message.src)) +
              " and " + std::to_string(shape.rail_of(message.dst)) + " do not reach each other";
    }
    return text;
  }
  return {};
}

}  // namespace paceline
