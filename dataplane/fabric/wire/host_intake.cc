#include "dataplane/fabric/wire/host_intake.h"

#include "dataplane/fabric/wire/link.h"
#include "dataplane/fabric/wire/statistics.h"
#include "dataplane/wire/extensions/int_record.h"
#include "dataplane/wire/headers/opcodes.h"

namespace paceline::fabric {

namespace {

constexpr std::size_t kEtherTypeAt = 12;
constexpr std::size_t kSourceAddressAt = 14 + 12;
constexpr std::size_t kDestinationAddressAt = 14 + 16;
constexpr std::size_t kSourcePortAt = 14 + 20;
constexpr std::size_t kNeeded = kSourcePortAt + 2;
constexpr std::size_t kSourceAddressV6At = 14 + 8;
constexpr std::size_t kDestinationAddressV6At = 14 + 24;
constexpr std::size_t kSourcePortV6At = 14 + 40;
constexpr std::size_t kNeededV6 = kSourcePortV6At + 2;
constexpr std::uint8_t kFirstControlOpcode = 0xC0;

std::uint32_t load16(const Packet& packet, std::size_t at) {
  return std::to_integer<std::uint32_t>(packet.header[at]) << 8 |
         std::to_integer<std::uint32_t>(packet.header[at + 1]);
}
std::uint32_t load32(const Packet& packet, std::size_t at) {
  return load16(packet, at) << 16 | load16(packet, at + 2);
}
std::uint64_t load64(const Packet& packet, std::size_t at) {
  return std::uint64_t{load32(packet, at)} << 32 | load32(packet, at + 4);
}

// Everything that distinguishes flows, whatever the protocol: addresses and ports of IPv4 and IPv6,
// MAC addresses of anything else. Not what changes from packet to packet of a flow.
std::uint32_t flow_hash(const Packet& packet) {
  constexpr std::size_t kEthernet = 14;
  std::uint64_t hash = 0;
  const auto add = [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to && i < packet.header_bytes; ++i) {
      hash = mix64(hash ^ std::to_integer<std::uint64_t>(packet.header[i]));
    }
  };
  add(0, kEthernet);
  if (packet.bth_offset >= kEthernet + 28) {  // addresses, then UDP right before
    add(static_cast<std::size_t>(packet.bth_offset) - 16, packet.bth_offset - 6U);
  }
  return static_cast<std::uint32_t>(hash);
}

constexpr std::uint64_t kControlLossStream = 0xFAB3'0000'0000'0000;  // of the run's seed

}  // namespace

HostIntake::HostIntake(const FabricSpec& spec)
    : spec_(spec),
      plain_hosts_(spec.port_subnets ? spec.nics() : spec.hosts),
      moves_answers_(spec.ack_class != kControlClass || spec.cnp_class != kControlClass),
      control_loss_(spec.seed, kControlLossStream) {}

void HostIntake::prepare(Packet& packet) {
  packet.wire_bytes = spec_.wire.wire_bytes(packet.frame_bytes(), packet.payload_bytes);
  if ((packet.flags & packet_flag::telemetry) != 0) [[unlikely]]
    packet.wire_bytes += wire::kIntHeaderBytes;
  packet.route = kRouteNone;
  if (packet.header_bytes >= kNeeded && load16(packet, kEtherTypeAt) == 0x0800) {
    const std::uint32_t to = load32(packet, kDestinationAddressAt);
    const std::uint32_t host = to - spec_.subnet_base - 1;
    packet.entropy =
        entropy_of(load32(packet, kSourceAddressAt), to, load16(packet, kSourcePortAt));
    if (host < plain_hosts_) {
      packet.route = host;
    } else if (const std::uint32_t by_port = host_at(spec_, host); by_port < spec_.hosts) {
      packet.route = by_port;
    }
  } else if (packet.header_bytes >= kNeededV6 && load16(packet, kEtherTypeAt) == 0x86DD) {
    // Among hosts of the fabric the last 32 bits tell all.
    const std::uint32_t to = load32(packet, kDestinationAddressV6At + 12);
    const std::uint32_t host = host_at(spec_, to - spec_.subnet_base - 1);
    packet.entropy =
        entropy_of(load32(packet, kSourceAddressV6At + 12), to, load16(packet, kSourcePortV6At));
    if (host < spec_.hosts && load64(packet, kDestinationAddressV6At) == spec_.prefix_v6 &&
        load32(packet, kDestinationAddressV6At + 8) == 0) {
      packet.route = host;
    }
  }
  if (moves_answers_) [[unlikely]]
    packet.traffic_class = class_in_switches(packet);
  if (spec_.drop_control_ppm != 0 && packet.bth_offset != 0) {
    const auto opcode = std::to_integer<std::uint8_t>(packet.header[packet.bth_offset]);
    const bool droppable = opcode >= kFirstControlOpcode &&
                           (spec_.control_opcodes >> (opcode - kFirstControlOpcode) & 1U) != 0;
    if (droppable && control_loss_.below(1'000'000) < spec_.drop_control_ppm) {
      packet.route = kRouteLost;
      packet.ingress = static_cast<std::uint16_t>(DropReason::control_loss);
    }
  }
}

void HostIntake::prepare_for(Packet& packet, std::uint8_t traffic_class, std::uint32_t to) {
  // A frame without a transport header has no ICRC, which frame_bytes() counts.
  const std::uint32_t frame = packet.frame_bytes() - (packet.bth_offset == 0 ? 4U : 0U);
  packet.wire_bytes = spec_.wire.wire_bytes(frame, packet.payload_bytes);
  packet.traffic_class = traffic_class;
  if (moves_answers_) packet.traffic_class = class_in_switches(packet);
  packet.entropy = flow_hash(packet);
  packet.route = to < spec_.hosts ? to : kRouteNone;
}

// In which class switches queue a packet, where that is not the one in which its host sent it.
std::uint8_t HostIntake::class_in_switches(const Packet& packet) const {
  if (packet.traffic_class != kControlClass || packet.bth_offset == 0) return packet.traffic_class;
  const auto opcode = static_cast<wire::Opcode>(packet.header[packet.bth_offset]);
  switch (wire::properties(opcode).operation) {
    case wire::Operation::acknowledge:
    case wire::Operation::atomic_acknowledge:
    case wire::Operation::xack:
      return spec_.ack_class;
    case wire::Operation::cnp:
      return spec_.cnp_class;
    default:
      return packet.traffic_class;
  }
}

}  // namespace paceline::fabric
