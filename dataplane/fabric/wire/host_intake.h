// Sets the fields of a packet before it goes on its host's uplink: size on the wire, destination,
// hash of its flow, and the class in which switches queue it.
#pragma once

#include <cstdint>

#include "dataplane/base/numbers/random.h"
#include "dataplane/fabric/topology/fabric_spec.h"
#include "dataplane/port/packet.h"

namespace paceline::fabric {

// The hash of an IPv4 flow: its addresses and its UDP source port.
inline std::uint32_t entropy_of(std::uint32_t from, std::uint32_t to, std::uint32_t source_port) {
  return static_cast<std::uint32_t>(
      mix64((std::uint64_t{from} << 32 | to) + (std::uint64_t{source_port} << 20)));
}

class HostIntake {
 public:
  // Must outlive this.
  explicit HostIntake(const FabricSpec& spec);

  // Uses the packet's own addresses. With FabricSpec::drop_control_ppm, control packets are lost
  // here: their route is kRouteLost.
  void prepare(Packet& packet);
  // For host `to`, with any protocol. A packet to a number that is not a host's has no destination.
  void prepare_for(Packet& packet, std::uint8_t traffic_class, std::uint32_t to);

 private:
  std::uint8_t class_in_switches(const Packet& packet) const;

  const FabricSpec& spec_;
  // Whose addresses follow one another. Asked for first: host_at() for every packet costs 4 of
  // 1,450 instructions a hop.
  std::uint32_t plain_hosts_;
  bool moves_answers_;  // to ack_class or cnp_class
  Random control_loss_;
};

}  // namespace paceline::fabric
