// In which class switches queue a packet, where that is not the one in which its host sent it.
#include "dataplane/fabric/network.h"
#include "dataplane/wire/opcodes.h"

namespace paceline::fabric {

std::uint8_t Network::class_in_switches(const Packet& packet) const {
  if (packet.traffic_class != kControlClass || packet.bth_offset == 0) return packet.traffic_class;
  switch (static_cast<wire::Opcode>(packet.header[packet.bth_offset])) {
    case wire::Opcode::rc_acknowledge:
    case wire::Opcode::rc_atomic_acknowledge:
    case wire::Opcode::xack:
      return spec_.ack_class;
    case wire::Opcode::cnp:
      return spec_.cnp_class;
    default:
      return packet.traffic_class;
  }
}

}  // namespace paceline::fabric
