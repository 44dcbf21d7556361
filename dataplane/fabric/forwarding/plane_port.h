// The emulated port of a host with several ports (FabricSpec::ports): a host port that chooses, for
// each packet, the port of the destination to which the fabric would deliver it. Packets carry the
// address of a host, which all its ports share, or with FabricSpec::port_subnets that of a port.
//
// Ports of the same number with a fabric of their own (a plane): a packet arrives by the port of
// the number that it left by. Ports in one fabric (FabricSpec::shared_planes, dual-ToR): the fabric
// spreads packets over the ports of their destination by a hash, here their UDP source port; once
// the switches know that the link of such a port has failed, they use another.
#pragma once

#include <cstdint>
#include <vector>

#include "dataplane/fabric/forwarding/host_port.h"
#include "dataplane/fabric/topology/topology.h"

namespace paceline::fabric {

class PlanePort final : public Port {
 public:
  // `endpoint`: its number in the fabric. All arguments must outlive this; `failed`: links of the
  // spec that the switches consider failed.
  PlanePort(Forwarding& forwarding, HostPort& port, std::uint32_t endpoint,
            const Topology& topology, const std::vector<bool>& failed);

  std::size_t rx(std::span<Packet*> burst) override { return port_.rx(burst); }
  std::size_t tx(Picos now, std::uint8_t traffic_class, std::span<Packet* const> burst) override;
  Picos rx_ready_at() const override { return port_.rx_ready_at(); }
  Picos tx_ready_at(std::uint8_t traffic_class) const override {
    return port_.tx_ready_at(traffic_class);
  }
  std::uint8_t links_up() const override { return port_.links_up(); }
  PacketPool& packets() override { return port_.packets(); }
  PortInfo info() const override { return port_.info(); }

 private:
  std::uint32_t port_of_destination(const Packet& packet, std::uint32_t host);

  Forwarding& forwarding_;
  HostPort& port_;
  const Topology& topology_;
  const std::vector<bool>& failed_;
  std::uint32_t hosts_;  // each with `ports_` endpoints
  std::uint32_t ports_;
  std::uint32_t own_;  // number of this port
  bool shared_;
  bool subnets_;
  std::uint32_t turn_ = 0;  // of control packets
};

}  // namespace paceline::fabric
