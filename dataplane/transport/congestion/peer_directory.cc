#include "dataplane/transport/congestion/peer_directory.h"

#include <algorithm>

#include "dataplane/wire/headers/dscp.h"

namespace paceline::transport {

namespace {

std::uint32_t mbps_of(Rate rate) { return static_cast<std::uint32_t>(rate.bps / 1'000'000); }

// Headers of control packets from this end.
wire::HeaderTemplate control_header(const EngineCore& core, const wire::IpAddress& ip,
                                    const wire::MacAddress& mac) {
  wire::FlowAddressing flow;
  flow.source_mac = core.config.mac;
  flow.destination_mac = mac;
  flow.source = core.config.source_for(ip);
  flow.destination = ip;
  flow.dscp = wire::kDefaultDscpMap.dscp(kControlClass);
  flow.ecn = Ecn::not_ect;
  return wire::make_header_template(flow);
}

}  // namespace

PeerDirectory::PeerDirectory(EngineCore& core, const CongestionSetups& setups,
                             ControlMessages& messages)
    : core_(core), setups_(setups), messages_(messages) {
  for (std::uint8_t c = 0; c < kTrafficClasses; ++c) hints_[c] = exact_hint(c);
}

std::uint32_t PeerDirectory::add(const wire::IpAddress& ip, const wire::MacAddress& mac,
                                 std::uint8_t traffic_class) {
  bool created = false;
  const std::uint32_t index = core_.peers.find_or_add(ip, mac, traffic_class, created);
  if (created) begin(index);
  Peer& peer = core_.peers[index];
  if (++peer.queue_pairs == 1) {
    ++connected_[traffic_class];
    update_hint(traffic_class);
    // A peer that comes back knows the number of peers from before.
    if (peer.status == PeerStatus::paceline && peer.told != hint_for(peer) &&
        advertises_peer_count()) {
      resend_hello(index);
    }
  }
  return index;
}

void PeerDirectory::begin(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  peer.control = control_header(core_, peer.ip, peer.mac);
  setups_.place(peer);
  switch (core_.config.peers) {
    case PeerPolicy::paceline:
      peer.status = PeerStatus::paceline;
      break;
    case PeerPolicy::roce:
      peer.status = PeerStatus::roce;
      break;
    case PeerPolicy::discover:
      peer.status =
          setups_.proactive() || offers_selective() ? PeerStatus::unknown : PeerStatus::roce;
      break;
  }
  if (!core_.config.speak_control) peer.status = PeerStatus::roce;
  peer.selective = peer.status == PeerStatus::paceline && offers_selective();
  peer.telemetry = peer.selective && core_.info.telemetry;
  if (peer.status == PeerStatus::unknown) {
    peer.next_hello = core_.now;
    waiting_hello_.push_back(index);
    core_.control_active = true;
  }
}

bool PeerDirectory::release(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  if (--peer.queue_pairs != 0) return false;
  --connected_[peer.traffic_class];
  update_hint(peer.traffic_class);
  return true;
}

std::uint8_t PeerDirectory::exact_hint(std::uint8_t traffic_class) const {
  return peer_count_hint_of(
      std::max(connected_[traffic_class], core_.config.expected_peers[traffic_class]));
}

// Senders ask a receiver with many peers first (cc/cadence/cadence.h), and do not ask one with few
// peers. So all connected peers have to know, before they send, that the number has doubled. A fall
// of the number costs only time: a message is worth it when three quarters are gone.
void PeerDirectory::update_hint(std::uint8_t traffic_class) {
  const std::uint8_t now = exact_hint(traffic_class);
  std::uint8_t& hint = hints_[traffic_class];
  if (now == hint || now + 1 == hint) return;
  hint = now;
  if (!advertises_peer_count()) return;
  for (std::uint32_t i = 0; i < core_.peers.size(); ++i) {
    const Peer& peer = core_.peers[i];
    if (peer.traffic_class != traffic_class || peer.queue_pairs == 0 ||
        peer.status != PeerStatus::paceline || peer.told == hint)
      continue;
    if (core_.peers.find(peer.ip, peer.traffic_class) == i) resend_hello(i);
  }
}

// Starts a new count of tries.
void PeerDirectory::resend_hello(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  const bool waits = awaits_hello(peer);
  peer.greeting = true;
  peer.hellos_sent = 0;
  peer.next_hello = core_.now;
  if (!waits) waiting_hello_.push_back(index);
  core_.control_active = true;
}

void PeerDirectory::resend_hellos() {
  if (core_.config.peers != PeerPolicy::discover || !core_.config.speak_control) return;
  for (std::uint32_t i = 0; i < core_.peers.size(); ++i) {
    Peer& peer = core_.peers[i];
    resend_hello(i);
    const bool grants = (peer.features & kFeatureGrants) != 0;
    peer.status = grants ? PeerStatus::paceline : PeerStatus::unknown;
  }
}

void PeerDirectory::tell_growth(std::uint32_t index) {
  const Peer& peer = core_.peers[index];
  if (peer.told != hint_for(peer) && peer.queue_pairs != 0 && advertises_peer_count())
    resend_hello(index);
}

std::uint32_t PeerDirectory::features() const {
  const bool several = core_.config.multipath != Multipath::none;
  return (setups_.grants() && core_.receiver != nullptr ? kFeatureGrants : 0U) |
         (offers_selective() ? kFeatureXack : 0U) |
         (offers_selective() && several ? kFeatureMultipath : 0U) |
         (offers_selective() && core_.info.telemetry ? kFeatureTelemetry : 0U);
}

void PeerDirectory::send_hello(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  HelloMessage hello;
  hello.traffic_class = peer.traffic_class;
  hello.peer_count_hint = peer.told = hint_for(peer);
  hello.features = features();
  hello.link_mbps = mbps_of(core_.info.link_rate);
  hello.mtu_bytes = static_cast<std::uint16_t>(core_.config.payload_mtu);
  hello.timestamp_ns = static_cast<std::uint64_t>(to_nanos(core_.now).count);
  ++peer.hellos_sent;
  peer.next_hello = core_.now + core_.config.hello_interval;
  messages_.send(peer.control, hello, core_.counters.hellos_sent);
}

std::optional<PeerNews> PeerDirectory::on_hello(const wire::ParsedPacket& parsed,
                                                const Packet& packet) {
  HelloMessage hello;
  const wire::ParseError error =
      wire::parse_control(wire::control_body(packet.header_view(), parsed), hello);
  if (error != wire::ParseError::ok) {
    core_.count_malformed(error);
    return std::nullopt;
  }
  ++core_.counters.hellos_received;
  if (!wire::negotiate_version(hello)) return std::nullopt;  // stays roce
  const std::uint32_t index = core_.peers.find(parsed.source, hello.traffic_class);
  if (!hello.reply) {
    HelloMessage reply;
    reply.reply = true;
    reply.traffic_class = hello.traffic_class;
    reply.features = features();
    reply.link_mbps = mbps_of(core_.info.link_rate);
    reply.mtu_bytes = static_cast<std::uint16_t>(core_.config.payload_mtu);
    reply.timestamp_ns = static_cast<std::uint64_t>(to_nanos(core_.now).count);
    reply.timestamp_echo_ns = hello.timestamp_ns;
    reply.peer_count_hint = hints_[hello.traffic_class];
    if (index != kNoIndex) core_.peers[index].told = reply.peer_count_hint;
    messages_.send(
        control_header(core_, parsed.source, wire::MacAddress::load(packet.header.data() + 6)),
        reply, core_.counters.hellos_sent);
  }
  if (index == kNoIndex || core_.config.peers != PeerPolicy::discover) return std::nullopt;
  Peer& peer = core_.peers[index];
  peer.heard = true;
  peer.greeting = false;
  peer.features = hello.features;
  return PeerNews{index, hello.features, hello.peer_count_hint};
}

void PeerDirectory::poll() {
  for (std::size_t i = 0; i < waiting_hello_.size();) {
    Peer& peer = core_.peers[waiting_hello_[i]];
    if (awaits_hello(peer) && peer.next_hello <= core_.now) {
      if (peer.hellos_sent < kHelloTries) {
        send_hello(waiting_hello_[i]);
      } else {
        peer.greeting = false;
        // A late answer still upgrades the peer.
        if (peer.status == PeerStatus::unknown) peer.status = PeerStatus::roce;
      }
    }
    if (awaits_hello(peer)) {
      ++i;
    } else {
      waiting_hello_[i] = waiting_hello_.back();
      waiting_hello_.pop_back();
    }
  }
}

}  // namespace paceline::transport
