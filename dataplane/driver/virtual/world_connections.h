// How hosts of a virtual world connect: out of band and in no time, as a connection manager would
// have done before. The n-th connection of a world draws the same numbers in every run.
#pragma once

#include <cstdint>
#include <memory>

#include "dataplane/base/containers/slab.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/scenario/scenario_setup.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "dataplane/driver/traffic/plan_index.h"
#include "dataplane/driver/traffic/port_plan.h"
#include "dataplane/driver/virtual/world_host.h"
#include "dataplane/fabric/network.h"

namespace paceline {

// Every bit reaches others: what draws for connections, and what hashes results, of a world.
constexpr std::uint64_t world_mix(std::uint64_t x) {
  x ^= x >> 32;
  x *= 0xD6E8'FEB8'6659'FD93ULL;
  x ^= x >> 32;
  return x;
}

class WorldConnections {
 public:
  // Everything must outlive it. The links are those of `network`; `index` is of the plan.
  WorldConnections(const config::Scenario& scenario, const WorldPlan& setup,
                   const MessagePlan& plan, const PlanIndex& index, const fabric::Network& network,
                   Slab<WorldHost>& hosts);

  // Connects two queue pairs for this message and others like it. Returns the number of that of
  // the sender. The receiver may be due sooner than before.
  std::uint32_t connect(Picos now, const PlannedMessage& message);

 private:
  static std::uint32_t create(WorldHost& host, transport::QpConfig& config);
  std::uint16_t source_port(Picos now, const PlannedMessage& message, std::uint64_t entropy) const;
  bool collides(const config::FaultConfig& fault, Picos now, std::uint64_t entropy) const;
  void advertise_peer_count(Picos now, std::uint32_t of, std::uint8_t traffic_class,
                            transport::Engine& to) const;

  const config::Scenario& scenario_;
  const WorldPlan& setup_;
  const PlanIndex& index_;
  const fabric::Network& network_;
  Slab<WorldHost>& hosts_;
  std::unique_ptr<PortPlan> ports_;  // transport.source_ports = "planned"
  std::uint32_t count_ = 0;          // of connections so far
};

}  // namespace paceline
