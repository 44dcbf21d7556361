// What the host answers, to whom, and what it learns from it. Frames are Packets as a port gives
// them.
#include "dataplane/neighbour/host_stack.h"

#include <catch2/catch.hpp>
#include <cstring>

#include "dataplane/port/packet_pool.h"
#include "tests/unit/neighbour/hub.h"

namespace paceline::neighbour {
namespace {

using test::host_config;
using test::mac;
using test::v4;
using test::v6;
using Verdict = HostStack::Verdict;
using wire::ArpMessage;
using wire::ArpOperation;
using wire::HostError;
using wire::IpAddress;
using wire::MacAddress;
using wire::NdKind;
using wire::NdMessage;

// Host 1, and a packet that arrives at it.
struct Listener {
  explicit Listener(const HostConfig& config = host_config(1))
      : stack(config, Random(1)), pool(1, 4096), packet(*pool.alloc()) {}

  void start(const MacAddress& to, const MacAddress& from, std::uint16_t type,
             std::optional<std::uint16_t> tci = {}) {
    packet.flags = 0;
    packet.bth_offset = 0;
    packet.payload_bytes = 0;
    packet.payload_kind = PayloadKind::none;
    end = wire::store_ethernet(packet.header.data(), to, from, tci, type);
  }
  std::byte* here() { return packet.header.data() + end; }
  HostStack::Result receive(std::size_t bytes) {
    packet.header_bytes = static_cast<std::uint16_t>(end + bytes);
    return stack.receive(now, packet);
  }
  HostStack::Result arp(const ArpMessage& m, std::uint32_t from, bool broadcast = true) {
    start(broadcast ? wire::kBroadcastMac : mac(1), mac(from), wire::kEtherTypeArp);
    wire::store_arp(here(), m);
    // Ethernet's padding to 60 bytes.
    std::memset(here() + wire::kArpBytes, 0, 18);
    return receive(wire::kArpBytes + 18);
  }
  HostStack::Result nd(const NdMessage& m, std::uint32_t from) {
    start(is_multicast(m.destination) ? wire::multicast_mac(m.destination) : mac(1), mac(from),
          wire::kEtherTypeIpv6);
    return receive(wire::store_nd(here(), m));
  }
  HostStack::Result echo(const IpAddress& source, const IpAddress& destination, std::size_t bytes,
                         std::uint8_t tos = 0, std::optional<std::uint16_t> tci = {}) {
    wire::EchoMessage m;
    m.ip.ipv6 = !destination.is_v4();
    m.ip.source = source;
    m.ip.destination = destination;
    m.ip.ttl = 17;
    m.ip.tos = tos;
    m.identifier = 9;
    std::vector<std::byte> data(bytes);
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<std::byte>(i * 3);
    start(mac(1), mac(2), m.ip.ipv6 ? wire::kEtherTypeIpv6 : wire::kEtherTypeIpv4, tci);
    std::size_t headers = wire::store_echo(here(), m, data);
    const std::size_t room = std::min(bytes, kMaxHeaderBytes - end - headers);
    if (bytes != 0) std::memcpy(here() + headers, data.data(), room);
    headers += room;
    packet.payload_bytes = static_cast<std::uint16_t>(bytes - room);
    if (bytes > room) {
      packet.payload_kind = PayloadKind::owned;
      std::memcpy(packet.payload, data.data() + room, bytes - room);
    }
    // Short frames are padded.
    if (end + headers < 60) headers = 60 - end;
    return receive(headers);
  }
  ArpMessage arp_answer() {
    ArpMessage m;
    REQUIRE(parse_arp(packet.header_view().subspan(14), m) == HostError::ok);
    return m;
  }
  NdMessage nd_answer() {
    NdMessage m;
    REQUIRE(parse_nd(packet.header_view().subspan(14), m) == HostError::ok);
    return m;
  }
  NeighbourState state(const IpAddress& ip) { return stack.table()[stack.table().find(ip)].state; }
  const HostCounters& counters() { return stack.counters(); }

  HostStack stack;
  PacketPool pool;
  Packet& packet;
  std::size_t end = 0;
  Picos now{0};
};

ArpMessage request(std::uint32_t from, std::uint32_t target) {
  ArpMessage m;
  m.sender_mac = mac(from);
  m.sender = v4(from);
  m.target = v4(target);
  return m;
}

NdMessage solicitation(std::uint32_t from, std::uint32_t target) {
  NdMessage m;
  m.source = v6(from);
  m.target = v6(target);
  m.destination = wire::solicited_node_group(m.target);
  m.link = mac(from);
  return m;
}

}  // namespace

TEST_CASE("host: an ARP request for us is answered to who asked, who is learned") {
  Listener h;
  CHECK(h.arp(request(2, 1), 2).verdict == Verdict::answer);
  CHECK(h.packet.header_bytes == 42);
  CHECK(h.packet.traffic_class == kControlClass);
  CHECK(h.packet.bth_offset == 0);
  CHECK(MacAddress::load(h.packet.header.data()) == mac(2));
  CHECK(MacAddress::load(h.packet.header.data() + 6) == mac(1));
  const ArpMessage answer = h.arp_answer();
  CHECK(answer.operation == ArpOperation::reply);
  CHECK(answer.sender == v4(1));
  CHECK(answer.sender_mac == mac(1));
  CHECK(answer.target == v4(2));
  CHECK(answer.target_mac == mac(2));
  CHECK(h.state(v4(2)) == NeighbourState::stale);
  CHECK(h.arp(request(3, 9), 3).verdict == Verdict::taken);  // for another host
  CHECK(h.stack.table().find(v4(3)) == NeighbourTable::kNone);
  CHECK(h.counters().arp_answers == 1);
}

TEST_CASE("host: a probe for our address is denied and teaches nothing") {
  Listener h;
  ArpMessage probe = request(2, 1);
  probe.sender = IpAddress::v4(0);
  CHECK(h.arp(probe, 2).verdict == Verdict::answer);
  CHECK(h.arp_answer().sender_mac == mac(1));
  CHECK(h.counters().duplicates_denied == 1);
  CHECK(h.stack.table().size() == 0);
}

TEST_CASE("host: who is not on the link is answered but not learned") {
  Listener h;
  ArpMessage m = request(2, 1);
  m.sender = IpAddress::v4(0x0B00'0001);
  CHECK(h.arp(m, 2).verdict == Verdict::answer);
  CHECK(h.stack.table().size() == 0);
}

TEST_CASE("host: an ARP reply confirms only who was asked, by unicast") {
  Listener h;
  ArpMessage reply = request(2, 1);
  reply.operation = ArpOperation::reply;
  h.stack.table().use(h.now, v4(2), 0);
  h.stack.table().next_due(h.now);
  SECTION("asked") {
    const auto result = h.arp(reply, 2, false);
    CHECK(result.verdict == Verdict::taken);
    CHECK(result.resolved == h.stack.table().find(v4(2)));
    CHECK(h.state(v4(2)) == NeighbourState::reachable);
  }
  SECTION("a gratuitous one, by broadcast") {
    h.arp(reply, 2, true);
    CHECK(h.state(v4(2)) == NeighbourState::stale);
  }
}

TEST_CASE("host: a solicitation for us is answered, also of those who check for duplicates") {
  Listener h;
  CHECK(h.nd(solicitation(2, 1), 2).verdict == Verdict::answer);
  NdMessage answer = h.nd_answer();
  CHECK(answer.kind == NdKind::advertisement);
  CHECK(answer.destination == v6(2));
  CHECK(answer.target == v6(1));
  CHECK(answer.link == mac(1));
  CHECK(answer.solicited);
  CHECK(answer.overrides);
  CHECK_FALSE(answer.router);
  CHECK(MacAddress::load(h.packet.header.data()) == mac(2));
  CHECK(h.state(v6(2)) == NeighbourState::stale);

  NdMessage dad = solicitation(3, 1);
  dad.source = IpAddress{};
  dad.link.reset();
  CHECK(h.nd(dad, 3).verdict == Verdict::answer);
  answer = h.nd_answer();
  CHECK(answer.destination == wire::all_nodes_group());
  CHECK_FALSE(answer.solicited);
  CHECK(MacAddress::load(h.packet.header.data()) ==
        *wire::mac_address_from_text("33:33:00:00:00:01"));
  CHECK(h.counters().duplicates_denied == 1);

  // A unicast probe need not say where it comes from.
  NdMessage probe = solicitation(2, 1);
  probe.destination = v6(1);
  probe.link.reset();
  CHECK(h.nd(probe, 2).verdict == Verdict::answer);
  CHECK(MacAddress::load(h.packet.header.data()) == mac(2));
  // To all nodes, but about another host.
  NdMessage other = solicitation(2, 7);
  other.destination = v6(1);
  CHECK(h.nd(other, 2).verdict == Verdict::taken);
  CHECK(h.counters().nd_answers == 3);
}

TEST_CASE("host: echo is answered in place, any size, class by DSCP, tag by class") {
  const bool ipv6 = GENERATE(false, true);
  const bool tagged = GENERATE(false, true);
  CAPTURE(ipv6, tagged);
  HostConfig config = host_config(1);
  if (tagged) config.vlan_id = 7;
  Listener h(config);
  const IpAddress from = ipv6 ? v6(2) : v4(2);
  const IpAddress to = ipv6 ? v6(1) : v4(1);
  std::optional<std::uint16_t> tci;
  if (tagged) tci = wire::vlan_tci(0, 7);
  for (const std::size_t bytes : {0U, 1U, 18U, 56U, 61U, 90U, 1000U, 1472U, 3999U}) {
    CAPTURE(bytes);
    REQUIRE(h.echo(from, to, bytes, 26 << 2, tci).verdict == Verdict::answer);
    CHECK(h.packet.traffic_class == 3);
    const std::size_t tag = tagged ? 4 : 0;
    const std::size_t l3 = 14 + tag;
    if (tagged) CHECK(wire::load_be16(h.packet.header.data() + 14) == wire::vlan_tci(3, 7));
    wire::EchoMessage reply;
    REQUIRE(parse_echo(h.packet.header_view().subspan(l3), h.packet.payload_view(), ipv6, reply) ==
            HostError::ok);
    CHECK(reply.reply);
    CHECK(reply.ip.source == to);
    CHECK(reply.ip.destination == from);
    CHECK(reply.data_bytes == bytes);
    // No padding of the request is sent back.
    CHECK(h.packet.header_bytes + std::size_t{h.packet.payload_bytes} ==
          l3 + (ipv6 ? 48 : 28) + bytes);
    CHECK(MacAddress::load(h.packet.header.data()) == mac(2));
  }
  CHECK(h.counters().echo_answers == 9);
}

TEST_CASE("host: echo has a limit, an off switch, and is not for groups") {
  HostConfig config = host_config(1);
  config.echo_per_second = 10;
  Listener h(config);
  int answered = 0;
  for (int i = 0; i < 100; ++i) answered += h.echo(v4(2), v4(1), 8).verdict == Verdict::answer;
  CHECK(answered == 10);
  h.now = seconds(1) / 2;
  for (int i = 0; i < 100; ++i) answered += h.echo(v4(2), v4(1), 8).verdict == Verdict::answer;
  CHECK(answered == 15);
  CHECK(h.counters().echo_limited == 185);
  CHECK(h.echo(v4(2), v4(255), 8).verdict == Verdict::taken);
  CHECK(h.counters().other_address == 1);
  config.answer_echo = false;
  Listener mute(config);
  CHECK(mute.echo(v4(2), v4(1), 8).verdict == Verdict::taken);
  CHECK(mute.counters().echo_unwanted == 1);
}

TEST_CASE("host: only what is addressed to us, in our VLAN, is looked at") {
  Listener h;
  h.start(mac(9), mac(2), wire::kEtherTypeArp);
  CHECK(h.receive(46).verdict == Verdict::refused);
  CHECK(h.counters().other_mac == 1);
  h.start(mac(1), mac(2), wire::kEtherTypeIpv4, wire::vlan_tci(0, 3));
  CHECK(h.receive(46).verdict == Verdict::refused);
  CHECK(h.counters().other_vlan == 1);
  // Only a priority: as if untagged.
  CHECK(h.echo(v4(2), v4(1), 8, 0, wire::vlan_tci(5, 0)).verdict == Verdict::answer);
  h.start(mac(1), mac(1), wire::kEtherTypeArp);
  wire::store_arp(h.here(), request(2, 1));
  h.receive(28);
  CHECK(h.counters().own_frames == 1);
  HostConfig config = host_config(1);
  config.vlan_id = 3;
  Listener tagged(config);
  CHECK(tagged.arp(request(2, 1), 2).verdict == Verdict::refused);
  CHECK(tagged.counters().untagged == 1);
}

TEST_CASE("host: refusals are counted by reason") {
  Listener h;
  const auto reason = [&](std::uint16_t type, auto fill, std::size_t bytes) {
    h.start(mac(1), mac(2), type);
    std::memset(h.here(), 0, 60);
    fill(h.here());
    const auto before = h.counters().errors;
    CHECK(h.receive(bytes).verdict == Verdict::refused);
    for (std::size_t i = 1; i < wire::kHostErrors; ++i) {
      if (h.counters().errors.count[i] != before.count[i]) return static_cast<HostError>(i);
    }
    return HostError::ok;
  };
  const auto nothing = [](std::byte*) {};
  CHECK(reason(0x88CC, nothing, 46) == HostError::ether_type);  // LLDP
  CHECK(reason(wire::kEtherTypeServiceVlan, nothing, 46) == HostError::vlan_too_deep);
  CHECK(reason(wire::kEtherTypeArp, nothing, 46) == HostError::arp_format);
  CHECK(reason(wire::kEtherTypeIpv4, nothing, 46) == HostError::ip_version);
  CHECK(reason(wire::kEtherTypeIpv4, nothing, 10) == HostError::too_short);
  const auto tcp = [](std::byte* p) {
    wire::IpHeader header;
    header.source = v4(2);
    header.destination = v4(1);
    header.protocol = 6;
    wire::store_ip(p, header, 20);
  };
  CHECK(reason(wire::kEtherTypeIpv4, tcp, 46) == HostError::protocol);
  h.start(mac(1), mac(2), wire::kEtherTypeIpv4);
  h.packet.flags |= packet_flag::corrupt;
  tcp(h.here());
  h.receive(46);
  CHECK(h.counters().errors.of(HostError::corrupt) == 1);
  h.packet.header_bytes = 13;
  CHECK(h.stack.receive(h.now, h.packet).verdict == Verdict::refused);
}

TEST_CASE("host: addresses to ask with, prefixes, next hops") {
  HostConfig config = host_config(1);
  config.addresses.push_back({IpAddress::v4(0x0A01'0001), 31});
  config.gateway_v4 = v4(254);
  const HostRoutes routes(config);
  IpAddress hop;
  CHECK(routes.next_hop(v4(2), hop) == HostRoutes::Hop::found);
  CHECK(hop == v4(2));
  CHECK(routes.next_hop(IpAddress::v4(0x0808'0808), hop) == HostRoutes::Hop::found);
  CHECK(hop == v4(254));
  CHECK(routes.next_hop(IpAddress::v4(0x0A01'0000), hop) == HostRoutes::Hop::found);
  CHECK(hop == IpAddress::v4(0x0A01'0000));  // the other end of a /31
  CHECK(routes.next_hop(v4(255), hop) == HostRoutes::Hop::not_unicast);
  CHECK(routes.next_hop(*wire::ip_address_from_text("fe80::1"), hop) == HostRoutes::Hop::found);
  CHECK(routes.next_hop(*wire::ip_address_from_text("fd01::1"), hop) == HostRoutes::Hop::no_route);
  CHECK(routes.next_hop(*wire::ip_address_from_text("::1"), hop) == HostRoutes::Hop::not_unicast);
  CHECK(routes.asks_as(v4(77), v4(2)) == 0);
  CHECK(routes.asks_as(v4(77), IpAddress::v4(0x0A01'0000)) == 2);
  CHECK(routes.asks_as(IpAddress::v4(0x0A01'0001), v4(2)) == 2);  // the packet's own source
  CHECK(routes.asks_as(IpAddress{}, v6(2)) == 1);
  CHECK(routes.own_index(v4(2)) == HostRoutes::kNotOwn);
}

}  // namespace paceline::neighbour
