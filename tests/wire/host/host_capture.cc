// Writes every frame that our host stack can say to a capture, for tshark_host_test.py: untagged,
// then again in VLAN 100. What each is stands in its comment.
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "dataplane/neighbour/host_stack.h"
#include "dataplane/port/capture/pcapng_writer.h"
#include "dataplane/port/packet_pool.h"

namespace {

using namespace paceline;
using namespace paceline::neighbour;

wire::IpAddress ip(const char* text) { return wire::ip_address_from_text(text).value(); }
const wire::MacAddress kPeer = wire::MacAddress::local(2);

class Speaker {
 public:
  Speaker(PcapngWriter& writer, std::uint32_t interface, std::optional<std::uint16_t> vlan)
      : writer_(writer),
        interface_(interface),
        vlan_(vlan),
        stack_(config(vlan), Random(1)),
        pool_(1, 4096),
        packet_(*pool_.alloc()) {}

  void say_all() {
    for (std::uint8_t i = 0; i < 2; ++i) {
      stack_.build_announcement(i, packet_);
      write("announcement");
    }
    for (const char* peer : {"10.0.0.2", "fd00::abcd:2"}) {
      const auto route = stack_.table().use(Picos{0}, ip(peer), ip(peer).is_v4() ? 0 : 1);
      stack_.build_solicit(stack_.table()[route.index], false, packet_);
      write("request");
      Neighbour known = stack_.table()[route.index];
      known.mac = kPeer;
      stack_.build_solicit(known, true, packet_);
      write("probe");
    }
    wire::ArpMessage arp;
    arp.sender_mac = kPeer;
    arp.sender = ip("10.0.0.2");
    arp.target = ip("10.0.0.1");
    answer(arp, "answer");
    arp.sender = ip("0.0.0.0");
    answer(arp, "denial");
    wire::NdMessage nd;
    nd.source = ip("fd00::abcd:2");
    nd.target = ip("fd00::1");
    nd.destination = wire::solicited_node_group(nd.target);
    nd.link = kPeer;
    answer(nd, "answer");
    nd.source = {};
    nd.link.reset();
    answer(nd, "denial");
    for (const std::size_t bytes : {0U, 1U, 56U, 1001U}) {
      echo("10.0.0.2", "10.0.0.1", bytes);
      echo("fd00::abcd:2", "fd00::1", bytes);
    }
  }

 private:
  static HostConfig config(std::optional<std::uint16_t> vlan) {
    HostConfig config;
    config.mac = wire::MacAddress::local(1);
    config.addresses = {{ip("10.0.0.1"), 24}, {ip("fd00::1"), 64}};
    config.vlan_id = vlan;
    return config;
  }

  void write(const char* comment) {
    std::vector<std::byte> frame(packet_.header_view().begin(), packet_.header_view().end());
    if (packet_.payload_kind == PayloadKind::owned) {
      frame.insert(frame.end(), packet_.payload, packet_.payload + packet_.payload_bytes);
    }
    CapturedFrame captured;
    captured.interface = interface_;
    captured.bytes = frame;
    captured.comment = comment;
    writer_.frame(captured);
  }

  std::byte* start(const wire::MacAddress& to, std::uint16_t type) {
    packet_.flags = 0;
    packet_.bth_offset = 0;
    packet_.payload_kind = PayloadKind::none;
    packet_.payload_bytes = 0;
    std::byte* const p = packet_.header.data();
    std::optional<std::uint16_t> tci;
    if (vlan_) tci = wire::vlan_tci(0, *vlan_);
    return p + wire::store_ethernet(p, to, kPeer, tci, type);
  }
  void finish(const std::byte* end, const char* comment) {
    packet_.header_bytes = static_cast<std::uint16_t>(end - packet_.header.data());
    if (stack_.receive(Picos{0}, packet_).verdict != HostStack::Verdict::answer) {
      throw std::runtime_error(std::string("no answer: ") + comment);
    }
    write(comment);
  }
  void answer(const wire::ArpMessage& m, const char* comment) {
    std::byte* const p = start(wire::kBroadcastMac, wire::kEtherTypeArp);
    wire::store_arp(p, m);
    finish(p + wire::kArpBytes, comment);
  }
  void answer(const wire::NdMessage& m, const char* comment) {
    std::byte* const p = start(wire::multicast_mac(m.destination), wire::kEtherTypeIpv6);
    finish(p + wire::store_nd(p, m), comment);
  }
  void echo(const char* from, const char* to, std::size_t bytes) {
    wire::EchoMessage m;
    m.ip.source = ip(from);
    m.ip.destination = ip(to);
    m.ip.ipv6 = !m.ip.source.is_v4();
    m.ip.ttl = 64;
    m.ip.tos = 26 << 2;
    m.identifier = 0x1234;
    m.sequence = static_cast<std::uint16_t>(bytes);
    const std::vector<std::byte> data(bytes, std::byte{0x5A});
    std::byte* p =
        start(wire::MacAddress::local(1), m.ip.ipv6 ? wire::kEtherTypeIpv6 : wire::kEtherTypeIpv4);
    p += wire::store_echo(p, m, data);
    if (bytes != 0) std::memcpy(packet_.payload, data.data(), bytes);
    packet_.payload_bytes = static_cast<std::uint16_t>(bytes);
    packet_.payload_kind = bytes == 0 ? PayloadKind::none : PayloadKind::owned;
    finish(p, "echo");
  }

  PcapngWriter& writer_;
  std::uint32_t interface_;
  std::optional<std::uint16_t> vlan_;
  HostStack stack_;
  PacketPool pool_;
  Packet& packet_;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: host_capture FILE\n", stderr);
    return 2;
  }
  try {
    std::ofstream out(argv[1], std::ios::binary);
    PcapngWriter writer(out, "host_capture");
    const std::uint32_t untagged = writer.add_interface("untagged", "", 10'000'000'000);
    const std::uint32_t tagged = writer.add_interface("tagged", "", 10'000'000'000);
    Speaker(writer, untagged, {}).say_all();
    Speaker(writer, tagged, 100).say_all();
    out.close();
    return out.good() ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "host_capture: %s\n", e.what());
    return 1;
  }
}
