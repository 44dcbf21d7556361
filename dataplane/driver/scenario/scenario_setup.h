// Builds the inputs of the rooms below from a scenario.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/algorithm.h"
#include "dataplane/config/scenario.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/transport/core/engine_config.h"
#include "dataplane/transport/interface/qp_config.h"

namespace paceline {

// The fabric of a scenario.
fabric::FabricSpec fabric_of(const config::Scenario& scenario);

// What the event does to each of its links.
std::vector<fabric::LinkEvent> link_events(const config::EventConfig& event);

// Empty `error` = usable. The scenario's own values were checked by the reader; what can still be
// wrong is what only the whole shows. Hosts need not reach each other: see no_path_of.
struct WorldPlan {
  std::string error;
  fabric::FabricSpec fabric;
  transport::EngineConfig engine;    // without address and MAC: per host
  transport::QpConfig queue_pair;    // without the queue objects
  std::vector<bool> speaks_control;  // per host
};

// How a NIC of several ports is seen: as one host that uses them all, as a host for each port
// (fabric.nics() hosts, then as many again), or as one host with an address for each port.
enum class NicShape : std::uint8_t { bonded, separate, multiport };
// By its name in nic.shape, which the reader has checked.
NicShape nic_shape(std::string_view name);

WorldPlan plan_world(const config::Scenario& scenario, NicShape shape = NicShape::bonded);

// Configures an engine by transport.planes for a NIC with this many ports, and completes the facts
// of one of them. Call it before plan_engine(). Returns why it is impossible, or an empty text.
std::string plan_planes(const config::TransportConfig& transport, const config::CcConfig& cc,
                        std::uint32_t ports, cc::PortFacts& facts, transport::EngineConfig& engine);

// Configures an engine by [transport] and [cc], on a port with these facts; all but the addresses.
// Returns an error, or an empty text.
std::string plan_engine(const config::TransportConfig& transport, const config::CcConfig& cc,
                        const cc::PortFacts& facts, transport::EngineConfig& engine);

// The parameter values of a [cc] table on a port with these facts, in ParamSpec order; `error`
// names every problem.
std::vector<double> resolve_cc(const std::string& algorithm, const std::string& profile,
                               std::span<const config::ParamValue> params,
                               const cc::PortFacts& facts, std::string& error);

}  // namespace paceline
