// libFuzzer target for the host stack and the port in front of a cable of memory: a script of
// frames from the network, packets of an engine, and time. What must hold: nothing is read or
// written out of bounds (sanitizers), every packet is accounted for, deadlines lie ahead, the
// table's lists, index and timers agree, and an answer is a frame that the strict parsers accept.
// Seeds: tests/fuzz/corpus/host.
//
// The script, step by step: a byte that says what (its upper bits choose details), then
//   0  frame      a length (2 bytes), then so many bytes as they come from the wire
//   1  send       one byte: to which neighbour; a packet of the engine leaves
//   2  time       2 bytes: so many milliseconds pass
//   3  arp        5 bytes: operation, sender, target and MAC address of a well-formed message
//   4  nd         5 bytes: the same for neighbour discovery, its checksum right
//   5  refuse     the port behind takes nothing until the next such step
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/neighbour/resolving_port.h"
#include "dataplane/wire/packet/build.h"

namespace {

using namespace paceline;
using namespace paceline::neighbour;

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "fuzz_host: %s\n", what.c_str());
  std::abort();
}

wire::IpAddress address_of(std::uint8_t n, bool ipv6) {
  if (!ipv6) return wire::IpAddress::v4(0x0A00'0000U + n);
  wire::IpAddress a;
  a.bytes[0] = std::byte{0xFD};
  a.bytes[15] = std::byte{n};
  return a;
}

// Takes what is sent and looks at it; gives what the script says.
class ScriptPort final : public Port {
 public:
  ScriptPort() : pool_(64, 512) {}
  std::size_t rx(std::span<Packet*> burst) override {
    if (next_ == nullptr || burst.empty()) return 0;
    burst[0] = std::exchange(next_, nullptr);
    return 1;
  }
  std::size_t tx(Picos, std::uint8_t, std::span<Packet* const> burst) override {
    if (refuses) return 0;
    for (Packet* packet : burst) {
      if (packet->bth_offset == 0) check_own(*packet);
      pool_.free(packet);
    }
    return burst.size();
  }
  Picos rx_ready_at() const override { return next_ == nullptr ? kNever : Picos{0}; }
  Picos tx_ready_at(std::uint8_t) const override { return refuses ? kNever : Picos{0}; }
  PacketPool& packets() override { return pool_; }
  PortInfo info() const override {
    PortInfo info;
    info.link_rate = rate_from_gbps(1);
    info.payload_room = 512;
    return info;
  }

  // The bytes lie in buffers of exactly the frame's size, so that a sanitizer sees a step too far.
  bool give(std::span<const std::byte> frame) {
    Packet* packet = pool_.alloc();
    if (packet == nullptr) return false;
    const std::size_t headers = std::min(frame.size(), kMaxHeaderBytes);
    if (headers != 0) std::memcpy(packet->header.data(), frame.data(), headers);
    const std::size_t payload = std::min<std::size_t>(frame.size() - headers, 512);
    if (payload != 0) std::memcpy(packet->payload, frame.data() + headers, payload);
    packet->header_bytes = static_cast<std::uint16_t>(headers);
    packet->payload_bytes = static_cast<std::uint16_t>(payload);
    packet->payload_kind = payload == 0 ? PayloadKind::none : PayloadKind::owned;
    packet->bth_offset = 0;
    next_ = packet;
    return true;
  }
  bool refuses = false;

 private:
  static void check_own(const Packet& packet) {
    wire::EthernetHeader ethernet;
    const auto headers = packet.header_view();
    if (parse_ethernet(headers, ethernet) != wire::HostError::ok) fail("a frame without a header");
    const auto l3 = headers.subspan(ethernet.l3_offset);
    wire::ArpMessage arp;
    wire::NdMessage nd;
    wire::EchoMessage echo;
    const bool ipv6 = ethernet.ether_type == wire::kEtherTypeIpv6;
    const bool good =
        ethernet.ether_type == wire::kEtherTypeArp
            ? parse_arp(l3, arp) == wire::HostError::ok
            : parse_echo(l3, packet.payload_view(), ipv6, echo) == wire::HostError::ok ||
                  (ipv6 && parse_nd(l3, nd) == wire::HostError::ok);
    if (!good) fail("we said something that we would not accept");
  }

  PacketPool pool_;
  Packet* next_ = nullptr;
};

class Script {
 public:
  Script(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t b = rest_.front();
    rest_ = rest_.subspan(1);
    return b;
  }
  std::span<const std::byte> bytes(std::size_t n) {
    const auto out = rest_.first(std::min(n, rest_.size()));
    rest_ = rest_.subspan(out.size());
    return std::as_bytes(out);
  }

 private:
  std::span<const std::uint8_t> rest_;
};

HostConfig config_of(std::uint8_t choice) {
  HostConfig config;
  config.mac = wire::MacAddress::local(1);
  config.addresses = {{address_of(1, false), 24}, {address_of(1, true), 64}};
  if ((choice & 1U) != 0) config.vlan_id = 5;
  if ((choice & 2U) != 0) config.gateway_v4 = address_of(200, false);
  if ((choice & 4U) != 0) config.fixed = {{address_of(9, false), wire::MacAddress::local(9)}};
  config.limits.capacity = 8;
  config.limits.heard_capacity = 2;
  config.limits.parked_per_neighbour = 3;
  config.limits.parked = 5;
  return config;
}

struct Machine {
  explicit Machine(std::uint8_t choice)
      : tagged((choice & 1U) != 0), port(behind, config_of(choice), Random(1)) {}

  void frame(std::span<const std::byte> bytes) {
    if (!behind.give(bytes)) return;
    std::array<Packet*, 4> burst;
    const std::size_t n = port.rx(burst);
    for (std::size_t i = 0; i < n; ++i) port.packets().free(burst[i]);
  }

  void send(std::uint8_t to, bool ipv6, std::uint8_t traffic_class) {
    Packet* packet = port.packets().alloc();
    if (packet == nullptr) return;
    wire::FlowAddressing flow;
    flow.source = address_of(1, ipv6);
    flow.destination = address_of(to, ipv6);
    if (!ipv6 && to > 240) flow.destination = wire::IpAddress::v4(0x0808'0800U + to);
    const wire::HeaderTemplate header = wire::make_header_template(flow);
    packet->header_bytes = static_cast<std::uint16_t>(
        wire::build_data(header, packet->header, wire::TransportFields{}));
    packet->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    packet->payload_kind = PayloadKind::none;
    packet->payload_bytes = 0;
    if (port.tx(now, traffic_class, {&packet, 1}) == 0) port.packets().free(packet);
  }

  std::size_t start(std::byte* p, std::uint16_t type, bool group) {
    std::optional<std::uint16_t> tci;
    if (tagged) tci = wire::vlan_tci(0, 5);
    return wire::store_ethernet(p, group ? wire::kBroadcastMac : wire::MacAddress::local(1),
                                wire::MacAddress::local(77), tci, type);
  }

  void arp(Script& script) {
    wire::ArpMessage m;
    const std::uint8_t details = script.byte();
    m.operation = (details & 1U) != 0 ? wire::ArpOperation::reply : wire::ArpOperation::request;
    m.sender = (details & 2U) != 0 ? wire::IpAddress::v4(0) : address_of(script.byte(), false);
    m.target = address_of(script.byte(), false);
    m.sender_mac = wire::MacAddress::local(script.byte());
    std::array<std::byte, 64> bytes{};
    const std::size_t at = start(bytes.data(), wire::kEtherTypeArp, (details & 4U) != 0);
    wire::store_arp(bytes.data() + at, m);
    frame({bytes.data(), at + wire::kArpBytes});
  }

  void nd(Script& script) {
    wire::NdMessage m;
    const std::uint8_t details = script.byte();
    m.kind = (details & 1U) != 0 ? wire::NdKind::advertisement : wire::NdKind::solicitation;
    m.source = (details & 2U) != 0 ? wire::IpAddress{} : address_of(script.byte(), true);
    m.target = address_of(script.byte(), true);
    m.destination =
        (details & 4U) != 0 ? wire::solicited_node_group(address_of(1, true)) : address_of(1, true);
    m.solicited = (details & 8U) != 0;
    m.overrides = (details & 16U) != 0;
    if ((details & 32U) == 0) m.link = wire::MacAddress::local(script.byte());
    std::array<std::byte, 18 + wire::kNdMaxBytes> bytes{};
    const std::size_t at = start(bytes.data(), wire::kEtherTypeIpv6, false);
    frame({bytes.data(), at + wire::store_nd(bytes.data() + at, m)});
  }

  void pass(std::uint32_t milliseconds) {
    now += picos_from_micros(std::int64_t{1000} * milliseconds);
    port.poll(now);
    if (port.next_deadline() <= now) fail("a deadline is not later than the poll");
  }

  bool tagged;
  ScriptPort behind;
  ResolvingPort port;
  Picos now{0};
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Script script(data, size);
  auto machine = std::make_unique<Machine>(script.byte());
  machine->pass(0);
  while (!script.empty()) {
    const std::uint8_t what = script.byte();
    switch (what & 7U) {
      case 0: {
        const std::size_t length = std::size_t{script.byte()} << 8 | script.byte();
        machine->frame(script.bytes(length));
        break;
      }
      case 1:
        machine->send(script.byte(), (what & 8U) != 0, what >> 5);
        break;
      case 2: {
        const std::uint32_t high = script.byte();
        machine->pass(high << 8 | script.byte());
        break;
      }
      case 3:
        machine->arp(script);
        break;
      case 4:
        machine->nd(script);
        break;
      case 5:
        machine->behind.refuses = !machine->behind.refuses;
        break;
      default:
        break;
    }
    const std::string broken = machine->port.check_conservation();
    if (!broken.empty()) fail(broken);
  }
  // All is quiet in the end: every packet is back.
  machine->behind.refuses = false;
  for (int i = 0; i < 20; ++i) machine->pass(60'000);
  if (machine->port.parked() != 0) fail("packets wait for ever");
  if (machine->port.packets().in_use() != 0) fail("packets are not back");
  return 0;
}
