// UDP source ports of connections, chosen so that connections spread evenly over the equal paths of
// a fabric that hashes ports.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/fabric/topology/topology.h"

namespace paceline {

// A port near `port` that names plane `number` modulo the number of planes.
std::uint16_t on_plane(std::uint16_t port, std::uint32_t number, std::uint32_t planes);

// The first of some ports, `port` before all, by which packets from `src` to `dst` pass a directed
// link; nothing: none does.
std::optional<std::uint16_t> port_by(std::uint32_t link, const fabric::FabricSpec& spec,
                                     const fabric::Topology& topology, std::uint32_t src,
                                     std::uint32_t dst, std::uint16_t port);

class PortPlan {
 public:
  // Starts with the connection that has the most bytes: each gets, of a few ports, the one whose
  // busiest link between switches stays the least busy. Uses the plan's bytes, not the times at
  // which they are sent. Connections of pooled lanes have no port here.
  PortPlan(const MessagePlan& plan, const fabric::FabricSpec& spec,
           const fabric::Topology& topology, std::uint64_t seed);

  std::optional<std::uint16_t> port_of(const PlannedMessage& message) const;

 private:
  using Connection = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;  // src, dst, lane
  std::vector<std::pair<Connection, std::uint16_t>> ports_;                    // sorted
};

}  // namespace paceline
