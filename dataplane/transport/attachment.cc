// Who belongs where: peers, their contexts, and the queue pairs and address handles that use them.
#include <algorithm>

#include "cc/registry.h"
#include "dataplane/transport/control_plane.h"
#include "dataplane/transport/scheduler.h"
#include "dataplane/wire/dscp.h"

namespace paceline::transport {

std::uint32_t ControlPlane::make_context(std::uint32_t peer, cc::AlgorithmId algorithm,
                                         std::uint8_t traffic_class, std::uint8_t arm,
                                         const cc::Handover* handover) {
  const std::uint32_t index = scheduler_.create_context(algorithm, traffic_class, peer, handover);
  CongestionContext& context = core_.contexts[index];
  const bool changed = generation_ > 1;
  context.arm = changed ? number_of(context.side) : arm;
  context.epoch = changed ? epoch_ : 0;
  context.generation = static_cast<std::uint8_t>(generation_);
  return index;
}

std::uint32_t ControlPlane::find_or_add_peer(const wire::IpAddress& ip, const wire::MacAddress& mac,
                                             std::uint8_t traffic_class) {
  bool created = false;
  const std::uint32_t index = core_.peers.find_or_add(ip, mac, traffic_class, created);
  Peer& peer = core_.peers[index];
  if (created) {
    wire::FlowAddressing flow;
    flow.source_mac = core_.config.mac;
    flow.destination_mac = mac;
    flow.source = core_.config.source_for(ip);
    flow.destination = ip;
    flow.dscp = wire::kDefaultDscpMap.dscp(kControlClass);
    flow.ecn = Ecn::not_ect;
    peer.control = wire::make_header_template(flow);
    place(peer);
    switch (core_.config.peers) {
      case PeerPolicy::paceline:
        peer.status = PeerStatus::native;
        break;
      case PeerPolicy::roce:
        peer.status = PeerStatus::foreign;
        break;
      case PeerPolicy::discover:
        peer.status = proactive_ || offers_selective() ? PeerStatus::unknown : PeerStatus::foreign;
        break;
    }
    if (!core_.config.speak_control) peer.status = PeerStatus::foreign;
    peer.selective = peer.status == PeerStatus::native && offers_selective();
    peer.telemetry = peer.selective && core_.info.telemetry;
    // The leader asks for all shards.
    if (peer.status == PeerStatus::unknown && follower_ == nullptr) {
      peer.next_hello = core_.now;
      waiting_hello_.push_back(index);
      core_.control_active = true;
    }
  }
  if (++peer.queue_pairs == 1) {
    if (follower_ != nullptr) follower_->peer_added(index, peer);
    ++connected_;
    count_crowd();
    // Of one that comes back: what it knows is of then.
    if (peer.status == PeerStatus::native && peer.told != crowd_ && tells_crowd()) greet(index);
  }
  return index;
}

void ControlPlane::attach(AddressHandle& handle) {
  const QpPath& path = handle.path;
  handle.peer = find_or_add_peer(path.ip, path.mac, path.traffic_class);
  Peer& peer = core_.peers[handle.peer];
  const cc::AlgorithmId algorithm = algorithm_for(peer);
  // A channel is the whole peer's; where queue pairs have contexts of their own, the datagrams to
  // one peer and class share one.
  std::uint32_t& context = has_channels(algorithm) ? peer.context : peer.datagram_context;
  if (context == kNoIndex) {
    context = make_context(handle.peer, algorithm, path.traffic_class, 0, nullptr);
  }
  handle.context = context;
  ++core_.contexts[context].queue_pairs;
}

void ControlPlane::detach(AddressHandle& handle) {
  leave_context(handle.context);
  forget_peer(handle.peer);
}

void ControlPlane::attach(QueuePair& qp, const wire::IpAddress& ip, const wire::MacAddress& mac) {
  const std::uint32_t index = find_or_add_peer(ip, mac, qp.config.traffic_class);
  Peer& peer = core_.peers[index];
  qp.peer = index;
  qp.peer_v4 = ip.is_v4() ? ip.v4_value() : 0;
  join_context(qp, algorithm_for(peer), nullptr);
}

// Its peer is known. The queue pair gets a context of its own, or into the peer's channel.
void ControlPlane::join_context(QueuePair& qp, cc::AlgorithmId algorithm,
                                const cc::Handover* handover) {
  Peer& peer = core_.peers[qp.peer];
  const bool channel = has_channels(algorithm);
  std::uint32_t context = channel ? peer.context : kNoIndex;
  if (context == kNoIndex) {
    context = make_context(qp.peer, algorithm, qp.config.traffic_class, qp.config.arm, handover);
    if (channel) peer.context = context;
  }
  qp.context = context;
  ++core_.contexts[context].queue_pairs;
}

// Takes the queue pair out of its context.
void ControlPlane::leave_context(QueuePair& qp) {
  scheduler_.deactivate(qp);
  const std::uint32_t index = qp.context;
  CongestionContext& context = core_.contexts[index];
  context.inflight_bytes -= qp.requester.inflight_bytes;
  context.backlog_bytes -= qp.requester.backlog_bytes + qp.responder.backlog_bytes;
  qp.context = kNoIndex;
  leave_context(index);
}

// The last one turns off the light.
void ControlPlane::leave_context(std::uint32_t index) {
  CongestionContext& context = core_.contexts[index];
  if (--context.queue_pairs != 0) return;
  Peer& peer = core_.peers[context.peer];
  if (peer.datagram_context == index) peer.datagram_context = kNoIndex;
  if (peer.context == index) {
    if (context.proactive) close_channel(index);
    peer.context = kNoIndex;
  }
  scheduler_.destroy_context(index);
}

// Gives back what the peer has granted, and the share of the uplink.
void ControlPlane::close_channel(std::uint32_t index) {
  cc::Event event;
  event.now = to_nanos(core_.now);
  event.sent_total = core_.contexts[index].sent_total;
  event.signal = cc::Signal::idle;
  send_request(index, event, true);
  if (sender_ != nullptr) sender_->forget(event.now, index);
}

void ControlPlane::detach(QueuePair& qp) {
  if (qp.context != kNoIndex) leave_context(qp);
  if (qp.peer == kNoIndex) return;
  forget_peer(qp.peer);
  qp.peer = kNoIndex;
  qp.peer_v4 = 0;
}

// One user less.
void ControlPlane::forget_peer(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  if (--peer.queue_pairs != 0) return;
  --connected_;
  count_crowd();
  if (follower_ != nullptr) follower_->peer_gone(index);
  if (peer.far != nullptr) {  // its entries wait for the next time
    for (std::uint32_t shard = 0; shard < kMaxShards; ++shard) {
      if (peer.far->counters[shard] == nullptr) continue;
      core_.receiver->forget(to_nanos(core_.now), peer.far->entries[shard]);
      peer.far->counters[shard] = nullptr;
    }
  }
  if (peer.counters != nullptr) {
    core_.receiver->forget(to_nanos(core_.now), index);
    peer.counters = nullptr;
  }
}

// A CNP says whom the datagrams went to, but not in which class: all contexts of that peer's
// datagrams slow down.
void ControlPlane::on_datagram_cnp(const wire::IpAddress& source) {
  ++core_.counters.cnps_received;
  for (unsigned c = 0; c < kTrafficClasses; ++c) {
    const std::uint32_t peer = core_.peers.find(source, static_cast<std::uint8_t>(c));
    if (peer == kNoIndex) continue;
    const std::uint32_t own = core_.peers[peer].datagram_context;
    const std::uint32_t context = own != kNoIndex ? own : core_.peers[peer].context;
    if (context == kNoIndex) continue;
    cc::Event event;
    event.signal = cc::Signal::cnp;
    scheduler_.deliver(context, event);
  }
}

void ControlPlane::restart(QueuePair& qp) {
  CongestionContext& context = core_.contexts[qp.context];
  if (context.queue_pairs != 1 || context.peer == kNoIndex) return;
  if (core_.peers[context.peer].context == qp.context) return;  // a channel outlives its flows
  cc::Event event;
  event.now = to_nanos(core_.now);
  event.signal = cc::Signal::start;
  const cc::ParamBlock& params = core_.params_of(context);
  cc::start_state(params.id, context.state.data(), params, event, context.decision);
  if (context.decision.fallback) enter_fallback(context, event);
  context.sent_since_event = 0;
  context.next_send = core_.now;
  context.pace_from = core_.now;
  context.pace_bytes = 0;
}

void ControlPlane::offer_selective(QueuePair& qp) {
  if (qp.selective != nullptr || qp.config.type != QpType::rc) return;
  if (qp.peer == kNoIndex || !core_.peers[qp.peer].selective || !can_receive(qp.state)) return;
  const EngineConfig& config = core_.config;
  qp.selective = std::make_unique<SelectiveState>(config.window_packets);
  const unsigned paths = config.multipath == Multipath::none ? 1 : config.paths;
  const unsigned run = config.multipath == Multipath::chunk ? config.path_run : 1;
  qp.selective->paths = PathSet(qp.path.source_port, paths, run);
  qp.selective->send.reorder_steps = paths == 1 ? 0 : 8;
  qp.selective->receive.highest = qp.responder.expected;
  qp.responder.selective = true;
  // Whoever says HELLO need not have heard our answer yet. Its first XACK says that it has.
  qp.requester.peer_selective = config.peers == PeerPolicy::paceline;
}

// A receiver that many can send to is asked first (cc/cadence/cadence.h), and one that few can is
// not: so all that are connected have to know, before they send, when the number doubles. When it
// falls, that costs time only: a quarter of it is worth a message.
void ControlPlane::count_crowd() {
  const std::uint8_t now = crowd_of(std::max(connected_, core_.config.expected_peers));
  if (now == crowd_ || now + 1 == crowd_) return;
  crowd_ = now;
  if (!tells_crowd()) return;
  for (std::uint32_t i = 0; i < core_.peers.size(); ++i) {
    const Peer& peer = core_.peers[i];
    if (peer.queue_pairs == 0 || peer.status != PeerStatus::native || peer.told == crowd_) continue;
    if (core_.peers.find(peer.ip, peer.traffic_class) == i) greet(i);
  }
}

// Says HELLO again, with tries of its own.
void ControlPlane::greet(std::uint32_t index) {
  Peer& peer = core_.peers[index];
  const bool waits = awaits_hello(peer);
  peer.greeting = true;
  peer.hellos_sent = 0;
  peer.next_hello = core_.now;
  if (!waits) waiting_hello_.push_back(index);
  core_.control_active = true;
}

void ControlPlane::hear_crowd(std::uint32_t index, std::uint8_t crowd) {
  Peer& peer = core_.peers[index];
  if (crowd == 0 || crowd == peer.crowd) return;
  peer.crowd = crowd;
  if (peer.context == kNoIndex || !core_.contexts[peer.context].proactive) return;
  cc::Event event;
  event.signal = cc::Signal::tick;
  event.crowd = crowd;
  scheduler_.deliver(peer.context, event);
}

void ControlPlane::hear_crowd(const wire::IpAddress& ip, std::uint8_t traffic_class,
                              std::uint8_t crowd) {
  const std::uint32_t index = core_.peers.find(ip, traffic_class);
  if (index != kNoIndex) hear_crowd(index, crowd);
}

// The peer turned out to speak the control protocol: what goes to it moves to the channel.
void ControlPlane::upgrade(std::uint32_t peer_index) {
  Peer& peer = core_.peers[peer_index];
  if (peer.status == PeerStatus::native) return;
  peer.status = PeerStatus::native;
  for (QueuePair* qp : core_.qps) {
    if (qp != nullptr && qp->peer == peer_index) bring_home(*qp);
  }
  for (std::uint32_t i = 0; i < core_.handles.size(); ++i) {
    AddressHandle& handle = core_.handles[i];
    if (handle.in_use && handle.peer == peer_index) bring_home(handle);
  }
}

}  // namespace paceline::transport
