#include "tests/rt/dpdk/ring_pair.h"

#include <stdexcept>

#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/header_template.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/rt/dpdk/environment.h"

namespace paceline::test {

namespace {

template <class T>
std::unique_ptr<T> got(std::unique_ptr<T> made, const std::string& error) {
  if (made == nullptr) throw std::runtime_error(error);
  return made;
}

wire::HeaderTemplate header() {
  wire::FlowAddressing flow;
  flow.source_mac = wire::MacAddress::local(1);
  flow.destination_mac = wire::MacAddress::local(2);
  flow.source = wire::IpAddress::v4(0x0A000001);
  flow.destination = wire::IpAddress::v4(0x0A000002);
  flow.udp_source_port = wire::kFirstSourcePort;
  return make_header_template(flow);
}

}  // namespace

RingPair::RingPair(const RingPairConfig& config) {
  Eal& environment = eal();
  DpdkMemorySettings settings;
  settings.packets = config.packets;
  settings.payload_room = config.payload_room;
  settings.thread_cache = config.thread_cache;
  DpdkMemoryMade memory_made = DpdkMemory::make(settings);
  memory = got(std::move(memory_made.memory), memory_made.error);
  DpdkRingCableMade cable_made = DpdkRingCable::make("pair", config.slots);
  cable = got(std::move(cable_made.cable), cable_made.error);
  for (unsigned i = 0; i < 2; ++i) {
    DpdkDeviceSettings device;
    device.device = cable->device(i);
    device.mtu_bytes = config.payload_room;
    DpdkMemory* const queue = memory.get();
    DpdkDeviceOpened opened = DpdkDevice::open(environment, device, {&queue, 1});
    devices[i] = got(std::move(opened.device), opened.error);
    DpdkPortSettings port;
    port.link_rate = rate_from_gbps(100);
    port.engine_packets = config.packets;
    port.pool_id = static_cast<std::uint16_t>(i);
    DpdkPortMade made = DpdkPort::make(*devices[i], port);
    ports[i] = got(std::move(made.port), made.error);
  }
}

RingPair::~RingPair() {
  for (auto& port : ports) port.reset();
  for (auto& device : devices) device.reset();
  cable.reset();
}

Packet* RingPair::make(DpdkPort& port, std::uint16_t payload, unsigned first) const {
  Packet* const packet = port.packets().alloc();
  if (packet == nullptr) return nullptr;
  const wire::HeaderTemplate layers = header();
  wire::TransportFields fields;
  fields.opcode = wire::Opcode::rc_send_only;
  fields.dest_qpn = 0x11;
  fields.psn = Psn(first);
  fields.payload_bytes = payload;
  packet->header_bytes =
      static_cast<std::uint16_t>(wire::build_data(layers, packet->header, fields));
  packet->bth_offset = static_cast<std::uint16_t>(layers.bth_offset());
  packet->payload_bytes = static_cast<std::uint16_t>(payload + wire::pad_bytes(payload));
  packet->payload_kind = payload == 0 ? PayloadKind::none : PayloadKind::owned;
  for (unsigned i = 0; i < packet->payload_bytes; ++i) {
    packet->payload[i] = i < payload ? static_cast<std::byte>(first + i) : std::byte{0};
  }
  packet->icrc = wire::icrc(packet->header_view(), layers.l3_offset, packet->payload_view());
  return packet;
}

Packet* RingPair::receive(DpdkPort& port) {
  Packet* packet = nullptr;
  return port.rx({&packet, 1}) == 1 ? packet : nullptr;
}

bool RingPair::payload_is(const Packet& packet, std::uint16_t bytes, unsigned first) {
  if (packet.payload_bytes != bytes + wire::pad_bytes(bytes)) return false;
  for (unsigned i = 0; i < bytes; ++i) {
    if (packet.bytes()[i] != static_cast<std::byte>(first + i)) return false;
  }
  return true;
}

}  // namespace paceline::test
