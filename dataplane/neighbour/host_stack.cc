#include "dataplane/neighbour/host_stack.h"

#include <algorithm>
#include <cassert>

namespace paceline::neighbour {
namespace {

using wire::HostError;
using wire::IpAddress;
using wire::kEthernetBytes;
using wire::MacAddress;
using wire::NdKind;
using wire::NdMessage;

// The received frame becomes a frame that we send: fields that ports and engines cached for it are
// void. Without a base transport header there is no ICRC behind it.
void reset_fields(Packet& packet, std::uint8_t traffic_class) {
  packet.flags = 0;
  packet.bth_offset = 0;
  packet.entropy = 0;
  packet.route = 0;
  packet.digest = 0;
  packet.icrc = 0;
  packet.ecn = Ecn::not_ect;
  packet.traffic_class = traffic_class;
}

}  // namespace

HostStack::HostStack(const HostConfig& config, Random random)
    : mac_(config.mac),
      vlan_id_(config.vlan_id.value_or(0)),
      priority_of_class_(config.priority_of_class),
      dscp_(config.dscp),
      control_class_(config.control_class),
      routes_(config),
      table_(config.timing, config.limits, random),
      answer_echo_(config.answer_echo),
      echo_interval_(seconds(1) / config.echo_per_second),
      echo_burst_(seconds(1) - echo_interval_),
      announcements_(config.announcements),
      announce_interval_(config.announce_interval),
      defend_interval_(config.defend_interval) {
  mac_word_ = wire::load_be48(mac_.bytes.data());
  for (const FixedNeighbour& n : config.fixed) {
    const bool added = table_.add_fixed(n.address, n.mac);
    assert(added);
    static_cast<void>(added);
  }
}

HostStack::Result HostStack::refuse(HostError reason) {
  counters_.errors.record(reason);
  return {Verdict::refused};
}

// False: the frame is not for us, and was counted. A frame that passes has no tag any more.
bool HostStack::take_tag(Packet& packet) {
  wire::EthernetHeader header;
  if (const HostError e = parse_ethernet(packet.header_view(), header); e != HostError::ok) {
    refuse(e);
    return false;
  }
  if (!header.has_vlan) {
    ++counters_.untagged;
    return false;
  }
  // Without a VLAN of our own, a tag with identifier 0 only says a priority (802.1Q, 9.6).
  if ((header.vlan_tci & wire::kVlanIdMask) != vlan_id_) {
    ++counters_.other_vlan;
    return false;
  }
  packet.header_bytes =
      static_cast<std::uint16_t>(wire::remove_vlan(packet.header, packet.header_bytes));
  if (packet.bth_offset != 0) {
    packet.bth_offset = static_cast<std::uint16_t>(packet.bth_offset - wire::kVlanBytes);
  }
  return true;
}

HostStack::Result HostStack::receive_other(Picos now, Packet& packet) {
  if ((packet.flags & packet_flag::corrupt) != 0) return refuse(HostError::corrupt);
  const auto bytes = packet.header_view();
  if (MacAddress::load(bytes.data() + 6) == mac_) {
    ++counters_.own_frames;
    return {Verdict::taken};
  }
  const std::uint16_t type = wire::load_be16(bytes.data() + 12);
  const auto ip = bytes.subspan(kEthernetBytes);
  switch (type) {
    case wire::kEtherTypeArp:
      return receive_arp(now, packet);
    case wire::kEtherTypeServiceVlan:
      return refuse(HostError::vlan_too_deep);
    case wire::kEtherTypeIpv4:
    case wire::kEtherTypeIpv6:
      break;
    default:
      return refuse(HostError::ether_type);
  }
  const bool ipv6 = type == wire::kEtherTypeIpv6;
  wire::IpHeader header;
  if (const HostError e = parse_ip(ip, packet.payload_bytes, ipv6, header); e != HostError::ok) {
    return refuse(e);
  }
  if (routes_.own_index(header.destination) == HostRoutes::kNotOwn &&
      (!ipv6 || (routes_.own_group_index(header.destination) == HostRoutes::kNotOwn &&
                 header.destination != wire::all_nodes_group()))) {
    ++counters_.other_address;
    return {Verdict::taken};
  }
  if (header.protocol != (ipv6 ? wire::kIpProtocolIcmpV6 : wire::kIpProtocolIcmp)) {
    return refuse(HostError::protocol);
  }
  if (ipv6 && ip.size() > header.header_bytes) {
    const std::uint8_t message = wire::load_u8(ip.data() + header.header_bytes);
    if (message == static_cast<std::uint8_t>(NdKind::solicitation) ||
        message == static_cast<std::uint8_t>(NdKind::advertisement)) {
      return receive_nd(now, packet);
    }
  }
  return receive_echo(now, packet, ipv6);
}

// ---- ARP ----

HostStack::Result HostStack::receive_arp(Picos now, Packet& packet) {
  wire::ArpMessage m;
  const auto arp = packet.header_view().subspan(kEthernetBytes);
  if (const HostError e = parse_arp(arp, m); e != HostError::ok) return refuse(e);
  const bool request = m.operation == wire::ArpOperation::request;
  ++(request ? counters_.arp_requests : counters_.arp_replies);
  if (m.sender_mac == mac_) {
    ++counters_.own_frames;
    return {Verdict::taken};
  }
  const std::uint8_t sender = routes_.own_index(m.sender);
  if (sender != HostRoutes::kNotOwn) return conflict(now, sender, packet);

  const std::uint8_t target = routes_.own_index(m.target);
  const bool for_us = target != HostRoutes::kNotOwn;
  Result result;
  if (!request) {
    const bool unicast = !MacAddress::load(packet.header.data()).is_multicast();
    NeighbourTable::Advertisement a;
    a.ip = m.sender;
    a.mac = m.sender_mac;
    a.solicited = unicast && for_us && table_.asked(m.sender);
    a.overrides = true;
    result.resolved = table_.on_advertisement(now, a);
    return result;
  }
  if (!m.is_probe()) {
    const bool create = for_us && routes_.on_link(m.sender);
    result.resolved =
        table_.on_request(now, m.sender, m.sender_mac, for_us ? target : std::uint8_t{0}, create);
  }
  if (!for_us) {
    ++counters_.other_address;
    return result;
  }
  if (m.is_probe()) ++counters_.duplicates_denied;
  ++counters_.arp_answers;
  wire::ArpMessage reply;
  reply.operation = wire::ArpOperation::reply;
  reply.sender_mac = mac_;
  reply.sender = m.target;
  reply.target_mac = m.sender_mac;
  reply.target = m.sender;
  std::byte* const p = start_frame(packet, m.sender_mac, wire::kEtherTypeArp, control_class_);
  store_arp(p, reply);
  finish_frame(packet, p + wire::kArpBytes);
  result.verdict = Verdict::answer;
  return result;
}

// Another host claims our address. RFC 5227, 2.4 (b): send one announcement, unless there was a
// conflict only just before; otherwise the two hosts would announce against each other for ever.
HostStack::Result HostStack::conflict(Picos now, std::uint8_t own, Packet& packet) {
  ++counters_.conflicts;
  const bool defend = now >= may_defend_at_[own];
  may_defend_at_[own] = now + defend_interval_;
  if (!defend) return {Verdict::taken};
  ++counters_.defences;
  build_announcement(own, packet);
  return {Verdict::answer};
}

// ---- IPv6 neighbour discovery ----

HostStack::Result HostStack::receive_nd(Picos now, Packet& packet) {
  if (packet.payload_bytes != 0) return refuse(HostError::too_long);
  NdMessage m;
  const auto ip = packet.header_view().subspan(kEthernetBytes);
  if (const HostError e = parse_nd(ip, m); e != HostError::ok) return refuse(e);
  if (m.kind == NdKind::solicitation) {
    ++counters_.nd_solicitations;
    return receive_solicitation(now, m, packet);
  }
  ++counters_.nd_advertisements;
  if (m.link == mac_) {
    ++counters_.own_frames;
    return {Verdict::taken};
  }
  const std::uint8_t own = routes_.own_index(m.target);
  if (own != HostRoutes::kNotOwn) return conflict(now, own, packet);
  Result result;
  result.resolved =
      table_.on_advertisement(now, {m.target, m.link, m.solicited, m.overrides, m.router});
  return result;
}

HostStack::Result HostStack::receive_solicitation(Picos now, const NdMessage& m, Packet& packet) {
  const std::uint8_t own = routes_.own_index(m.target);
  if (own == HostRoutes::kNotOwn) {
    ++counters_.other_address;
    return {Verdict::taken};
  }
  const bool duplicate_check = m.source.is_unspecified();
  const std::uint8_t claimed = routes_.own_index(m.source);
  if (claimed != HostRoutes::kNotOwn) return conflict(now, claimed, packet);
  Result result;
  if (m.link && routes_.on_link(m.source)) {
    result.resolved = table_.on_request(now, m.source, *m.link, own, true);
  }
  NdMessage reply;
  reply.kind = NdKind::advertisement;
  reply.source = m.target;
  // RFC 4861, 7.2.4: if nobody can be addressed, the answer goes to all nodes, and is not
  // solicited.
  reply.destination = duplicate_check ? wire::all_nodes_group() : m.source;
  reply.target = m.target;
  reply.solicited = !duplicate_check;
  reply.overrides = true;
  reply.link = mac_;
  MacAddress to = MacAddress::load(packet.header.data() + 6);
  if (duplicate_check) {
    to = wire::multicast_mac(reply.destination);
    ++counters_.duplicates_denied;
  } else if (m.link) {
    to = *m.link;
  }
  ++counters_.nd_answers;
  std::byte* const p = start_frame(packet, to, wire::kEtherTypeIpv6, control_class_);
  finish_frame(packet, p + store_nd(p, reply));
  result.verdict = Verdict::answer;
  return result;
}

// ---- ICMP echo ----

// The generic cell rate algorithm (ITU-T I.371): echo_due_ is when the bucket would be full again.
bool HostStack::echo_allowed(Picos now) {
  const Picos due = later(echo_due_, now);
  if (due - now > echo_burst_) return false;
  echo_due_ = due + echo_interval_;
  return true;
}

HostStack::Result HostStack::receive_echo(Picos now, Packet& packet, bool ipv6) {
  const auto ip = packet.header_view().subspan(kEthernetBytes);
  wire::EchoMessage m;
  // A checksum over elided bytes is not possible.
  if (packet.payload_kind == PayloadKind::elided) return refuse(HostError::icmp_checksum);
  if (const HostError e = parse_echo(ip, packet.payload_view(), ipv6, m); e != HostError::ok) {
    return refuse(e);
  }
  // An echo to a group is not answered: many hosts would answer (RFC 1122, 3.2.2.6 allows silence).
  if (routes_.own_index(m.ip.destination) == HostRoutes::kNotOwn ||
      MacAddress::load(packet.header.data()) != mac_) {
    ++counters_.other_address;
    return {Verdict::taken};
  }
  if (m.reply) {
    ++counters_.echo_replies;
    return {Verdict::taken};
  }
  ++counters_.echo_requests;
  if (!answer_echo_) {
    ++counters_.echo_unwanted;
    return {Verdict::taken};
  }
  if (!echo_allowed(now)) {
    ++counters_.echo_limited;
    return {Verdict::taken};
  }
  make_echo_reply(ip, m);
  const MacAddress to = MacAddress::load(packet.header.data() + 6);
  const std::uint8_t traffic_class = dscp_.traffic_class(static_cast<std::uint8_t>(m.ip.tos >> 2));
  reset_fields(packet, traffic_class);
  store_ethernet(packet.header.data(), to, mac_, std::nullopt,
                 ipv6 ? wire::kEtherTypeIpv6 : wire::kEtherTypeIpv4);
  // The answer leaves out Ethernet's padding.
  const std::size_t frame = kEthernetBytes + m.ip.datagram_bytes;
  std::size_t headers = std::min<std::size_t>(frame, packet.header_bytes);
  packet.payload_bytes = static_cast<std::uint16_t>(frame - headers);
  if (packet.payload_bytes == 0) packet.payload_kind = PayloadKind::none;
  if (const auto tag = tci(traffic_class)) {
    headers = wire::set_vlan(packet.header, headers, *tag);
    if (headers == 0) return refuse(HostError::too_long);
  }
  packet.header_bytes = static_cast<std::uint16_t>(headers);
  ++counters_.echo_answers;
  return {Verdict::answer};
}

// ---- what we say ----

std::byte* HostStack::start_frame(Packet& packet, const MacAddress& destination,
                                  std::uint16_t ether_type, std::uint8_t traffic_class) const {
  reset_fields(packet, traffic_class);
  packet.payload_kind = PayloadKind::none;
  packet.payload_bytes = 0;
  std::byte* const p = packet.header.data();
  return p + store_ethernet(p, destination, mac_, tci(traffic_class), ether_type);
}

void HostStack::finish_frame(Packet& packet, const std::byte* end) const {
  packet.header_bytes = static_cast<std::uint16_t>(end - packet.header.data());
}

void HostStack::build_solicit(const Neighbour& n, bool unicast, Packet& packet) const {
  const IpAddress& own = routes_.address(n.local);
  if (n.ip.is_v4()) {
    wire::ArpMessage m;
    m.sender_mac = mac_;
    m.sender = own;
    m.target = n.ip;
    std::byte* const p = start_frame(packet, unicast ? n.mac : wire::kBroadcastMac,
                                     wire::kEtherTypeArp, control_class_);
    store_arp(p, m);
    finish_frame(packet, p + wire::kArpBytes);
    return;
  }
  NdMessage m;
  m.source = own;
  m.destination = unicast ? n.ip : wire::solicited_node_group(n.ip);
  m.target = n.ip;
  m.link = mac_;
  std::byte* const p = start_frame(packet, unicast ? n.mac : wire::multicast_mac(m.destination),
                                   wire::kEtherTypeIpv6, control_class_);
  finish_frame(packet, p + store_nd(p, m));
}

void HostStack::build_announcement(std::uint8_t own, Packet& packet) const {
  const IpAddress& address = routes_.address(own);
  if (address.is_v4()) {
    wire::ArpMessage m;
    m.sender_mac = mac_;
    m.sender = m.target = address;
    std::byte* const p =
        start_frame(packet, wire::kBroadcastMac, wire::kEtherTypeArp, control_class_);
    store_arp(p, m);
    finish_frame(packet, p + wire::kArpBytes);
    return;
  }
  NdMessage m;
  m.kind = NdKind::advertisement;
  m.source = m.target = address;
  m.destination = wire::all_nodes_group();
  m.overrides = true;
  m.link = mac_;
  std::byte* const p =
      start_frame(packet, wire::multicast_mac(m.destination), wire::kEtherTypeIpv6, control_class_);
  finish_frame(packet, p + store_nd(p, m));
}

void HostStack::announce(Picos now) {
  announcements_left_ = announcements_;
  next_announcement_ = announcements_left_ == 0 ? kNever : now;
}

void HostStack::announced(Picos now) {
  --announcements_left_;
  next_announcement_ = announcements_left_ == 0 ? kNever : now + announce_interval_;
}

void HostStack::set_mac(Picos now, const MacAddress& mac) {
  mac_ = mac;
  mac_word_ = wire::load_be48(mac_.bytes.data());
  announce(now);
}

}  // namespace paceline::neighbour
