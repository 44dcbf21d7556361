#include "dataplane/driver/virtual/world_connections.h"

#include <algorithm>

#include "dataplane/wire/headers/headers.h"

namespace paceline {

WorldConnections::WorldConnections(const config::Scenario& scenario, const WorldPlan& setup,
                                   const MessagePlan& plan, const PlanIndex& index,
                                   const fabric::Network& network, Slab<WorldHost>& hosts)
    : scenario_(scenario), setup_(setup), index_(index), network_(network), hosts_(hosts) {
  if (scenario.transport.source_ports == "planned") {
    ports_ = std::make_unique<PortPlan>(plan, network.spec(), network.topology(), scenario.seed);
  }
}

std::uint32_t WorldConnections::connect(Picos now, const PlannedMessage& message) {
  WorldHost& a = hosts_[message.src];
  WorldHost& b = hosts_[message.dst];
  transport::QpConfig config = setup_.queue_pair;
  config.traffic_class = message.traffic_class;
  // Queues no longer than what will ever be in them: the applications read nothing from one
  // another, and the far end of a connection only answers.
  config.max_rd_atomic = config.max_dest_rd_atomic = 0;
  config.send_queue_depth = static_cast<std::uint16_t>(
      std::min<std::uint64_t>(config.send_queue_depth, index_.posts(message.src)));
  const std::uint32_t qa = create(a, config);
  config.send_queue_depth = 1;
  const std::uint32_t qb = create(b, config);
  const std::uint64_t entropy = world_mix(scenario_.seed ^ (std::uint64_t{++count_} << 20));
  const std::uint16_t port = source_port(now, message, entropy);
  const Psn psn_a(static_cast<std::uint32_t>(entropy >> 16));
  const Psn psn_b(static_cast<std::uint32_t>(entropy >> 40));
  a.engine.connect(now, qa, b.engine.address_of(qb, psn_b), psn_a, port);
  b.engine.connect(now, qb, a.engine.address_of(qa, psn_a), psn_b, port);
  if (setup_.engine.peers == transport::PeerPolicy::paceline) {
    // Native without HELLO: what it would have said by now.
    advertise_peer_count(now, message.dst, message.traffic_class, a.engine);
    advertise_peer_count(now, message.src, message.traffic_class, b.engine);
  }
  return qa;
}

std::uint32_t WorldConnections::create(WorldHost& host, transport::QpConfig& config) {
  config.send_cq = config.receive_cq = &host.app.completions();
  config.receive_queue = &host.app.receives();
  return host.engine.create_qp(config);
}

std::uint16_t WorldConnections::source_port(Picos now, const PlannedMessage& message,
                                            std::uint64_t entropy) const {
  std::uint16_t port = wire::source_port_from_entropy(static_cast<std::uint32_t>(entropy));
  if (scenario_.transport.planes == "pinned") port = on_plane(port, count_, setup_.engine.planes);
  if (ports_ != nullptr) port = ports_->port_of(message).value_or(port);
  for (const config::FaultConfig& fault : scenario_.faults) {
    if (!collides(fault, now, entropy)) continue;
    port = port_by(2 * fault.links.front(), network_.spec(), network_.topology(), message.src,
                   message.dst, port)
               .value_or(port);
  }
  return port;
}

// Whether the fault has the newest connection share its link.
bool WorldConnections::collides(const config::FaultConfig& fault, Picos now,
                                std::uint64_t entropy) const {
  constexpr double kDraws = 65'536;
  if (fault.kind != "hash_collision" || now < fault.at || now >= fault.until()) return false;
  const std::uint64_t drawn =
      fault.seed == 0 ? entropy : world_mix(fault.seed ^ (std::uint64_t{count_} << 20));
  return static_cast<double>(drawn >> 24 & 0xFFFF) < fault.severity * kDraws;
}

// Tells an engine the peer-count hint of host `of`.
void WorldConnections::advertise_peer_count(Picos now, std::uint32_t of, std::uint8_t traffic_class,
                                            transport::Engine& to) const {
  if (!setup_.speaks_control[of]) return;
  const auto address = wire::IpAddress::v4(setup_.fabric.subnet_base + of + 1);
  to.on_peer_count_hint(now, address, traffic_class,
                        hosts_[of].engine.peer_count_hint(traffic_class));
}

}  // namespace paceline
