#include "dataplane/transport/congestion/congestion_manager.h"

#include <algorithm>
#include <array>
#include <utility>

#include "cc/registry.h"
#include "dataplane/transport/datagram/datagram.h"
#include "dataplane/transport/ends/requester.h"

namespace paceline::transport {

// --- contexts ---

std::uint32_t CongestionManager::make_context(std::uint32_t peer, cc::AlgorithmId algorithm,
                                              std::uint8_t traffic_class, std::uint8_t arm,
                                              const cc::Handover* handover) {
  const std::uint32_t index = create_context(algorithm, traffic_class, peer, handover);
  CongestionContext& context = core_.contexts[index];
  const bool changed = setups_.generation() > 1;
  context.arm = changed ? setups_.number_of(context.setup_slot) : arm;
  context.epoch = changed ? setups_.epoch() : 0;
  context.generation = static_cast<std::uint8_t>(setups_.generation());
  return index;
}

std::uint32_t CongestionManager::create_context(cc::AlgorithmId algorithm,
                                                std::uint8_t traffic_class, std::uint32_t peer,
                                                const cc::Handover* handover) {
  std::uint32_t index;
  if (core_.free_contexts.empty()) {
    index = core_.contexts.add(core_.context_storage.emplace_back());
    scheduler_.reserve(roomy(core_.contexts.size()));
  } else {
    index = core_.free_contexts.back();
    core_.free_contexts.pop_back();
  }
  CongestionContext& context = core_.contexts[index];
  const std::uint8_t in_rings = context.in_rings;  // stale ring entries may still name the slot
  context = CongestionContext{};
  context.in_rings = in_rings;
  context.in_use = true;
  context.traffic_class = traffic_class;
  context.peer = peer;
  context.limiter_since = core_.now;
  context.next_send = core_.now;
  context.pace_from = core_.now;
  start_algorithm(index, context, algorithm, handover);
  return index;
}

void CongestionManager::start_algorithm(std::uint32_t index, CongestionContext& context,
                                        cc::AlgorithmId algorithm, const cc::Handover* handover) {
  runner_.start(index, context, algorithm, handover);
  if (context.proactive) grants_.update_want(index, context);
}

void CongestionManager::replace_algorithm(std::uint32_t index, cc::AlgorithmId algorithm,
                                          const cc::Handover& handover) {
  CongestionContext& context = core_.contexts[index];
  const Rate rate_before = context.decision.rate;
  context.sent_since_event = 0;
  start_algorithm(index, context, algorithm, &handover);
  apply(index, context, rate_before, cc::Event{});
  if (context.active_head != kNoIndex || context.backlog_bytes != 0) announce_backlog(index);
}

void CongestionManager::destroy_context(std::uint32_t index) {
  CongestionContext& context = core_.contexts[index];
  scheduler_.remove(index);
  for (std::size_t i = 0; i < context.limiter_picos.size(); ++i) {
    core_.retired_limiter_picos[i] += context.limiter_picos[i];
  }
  context.in_use = false;
  core_.free_contexts.push_back(index);
}

// --- queue pairs and address handles ---

void CongestionManager::attach(AddressHandle& handle) {
  const QpPath& path = handle.path;
  handle.peer = peers_.add(path.ip, path.mac, path.traffic_class);
  Peer& peer = core_.peers[handle.peer];
  const cc::AlgorithmId algorithm = setups_.algorithm_for(peer);
  // A channel belongs to the whole peer. Where queue pairs have contexts of their own, the
  // datagrams to one peer and class share one.
  std::uint32_t& context =
      CongestionSetups::has_channels(algorithm) ? peer.context : peer.datagram_context;
  if (context == kNoIndex) {
    context = make_context(handle.peer, algorithm, path.traffic_class, 0, nullptr);
  }
  handle.context = context;
  ++core_.contexts[context].queue_pairs;
}

void CongestionManager::detach(AddressHandle& handle) {
  leave_context(handle.context);
  forget_peer(handle.peer);
}

void CongestionManager::attach(QueuePair& qp, const wire::IpAddress& ip,
                               const wire::MacAddress& mac) {
  const std::uint32_t index = peers_.add(ip, mac, qp.config.traffic_class);
  Peer& peer = core_.peers[index];
  qp.peer = index;
  qp.peer_v4 = ip.is_v4() ? ip.v4_value() : 0;
  join_context(qp, setups_.algorithm_for(peer), nullptr);
}

void CongestionManager::join_context(QueuePair& qp, cc::AlgorithmId algorithm,
                                     const cc::Handover* handover) {
  Peer& peer = core_.peers[qp.peer];
  const bool channel = CongestionSetups::has_channels(algorithm);
  std::uint32_t context = channel ? peer.context : kNoIndex;
  if (context == kNoIndex) {
    context = make_context(qp.peer, algorithm, qp.config.traffic_class, qp.config.arm, handover);
    if (channel) peer.context = context;
  }
  qp.context = context;
  ++core_.contexts[context].queue_pairs;
}

void CongestionManager::leave_context(QueuePair& qp) {
  scheduler_.deactivate(qp);
  const std::uint32_t index = qp.context;
  CongestionContext& context = core_.contexts[index];
  context.inflight_bytes -= qp.requester.inflight_bytes;
  context.backlog_bytes -= qp.requester.backlog_bytes + qp.responder.backlog_bytes;
  qp.context = kNoIndex;
  leave_context(index);
}

void CongestionManager::leave_context(std::uint32_t index) {
  CongestionContext& context = core_.contexts[index];
  if (--context.queue_pairs != 0) return;
  Peer& peer = core_.peers[context.peer];
  if (peer.datagram_context == index) peer.datagram_context = kNoIndex;
  if (peer.context == index) {
    if (context.proactive) close_channel(index);
    peer.context = kNoIndex;
  }
  destroy_context(index);
}

void CongestionManager::close_channel(std::uint32_t index) {
  cc::Event event;
  event.now = to_nanos(core_.now);
  event.sent_total = core_.contexts[index].sent_total;
  event.signal = cc::Signal::idle;
  grants_.send_request(index, event, true);
  grants_.forget_context(index);
}

void CongestionManager::detach(QueuePair& qp) {
  if (qp.context != kNoIndex) leave_context(qp);
  if (qp.peer == kNoIndex) return;
  forget_peer(qp.peer);
  qp.peer = kNoIndex;
  qp.peer_v4 = 0;
}

void CongestionManager::forget_peer(std::uint32_t index) {
  if (peers_.release(index)) grants_.forget_peer(index);
}

void CongestionManager::restart(QueuePair& qp) {
  CongestionContext& context = core_.contexts[qp.context];
  if (context.queue_pairs != 1 || context.peer == kNoIndex) return;
  if (core_.peers[context.peer].context == qp.context) return;  // a channel outlives its flows
  runner_.restart(context);
  context.sent_since_event = 0;
  context.next_send = core_.now;
  context.pace_from = core_.now;
  context.pace_bytes = 0;
}

// --- what queue pairs ask for ---

void CongestionManager::perform_all() {
  core_.actions.take_all([this](Action& action) { perform(action); },
                         [this](std::uint32_t context) { release(context); });
  tell_of_work();
}

void CongestionManager::tell_of_work() {
  if (untold_ == kNoIndex) return;
  const std::uint32_t index = std::exchange(untold_, kNoIndex);
  const CongestionContext& context = core_.contexts[index];
  if (context.told_idle && context.active_head != kNoIndex) announce_backlog(index);
}

void CongestionManager::perform(Action& action) {
  switch (action.kind) {
    case Action::Kind::settle:
      settle(*action.qp);
      return;
    case Action::Kind::settle_or_idle: {
      const bool was_active = action.qp->active;
      settle(*action.qp);
      if (was_active && !action.qp->active) report_idle(action.qp->context);
      return;
    }
    case Action::Kind::stop:
      scheduler_.deactivate(*action.qp);
      return;
    case Action::Kind::resume:
      resume(*action.qp);
      return;
    case Action::Kind::resume_and_report:
      resume_and_report(*action.qp);
      return;
    case Action::Kind::dropped:
      scheduler_.deactivate(*action.qp);
      if (action.qp->config.type == QpType::ud) {
        action.qp->context = kNoIndex;
      } else {
        // Its bytes in flight may have held up other queue pairs of the context.
        release(action.qp->context);
      }
      return;
    case Action::Kind::deliver:
      deliver(action.context, action.event);
      return;
    case Action::Kind::idle:
      report_idle(action.context);
      return;
    case Action::Kind::send_in_line:
      scheduler_.backlog().send_in_line(action.packet);
      return;
  }
}

void CongestionManager::resume(QueuePair& qp) {
  if (!Requester::has_work(qp, core_.now)) return;
  scheduler_.activate(qp);
  release(qp.context);
  note_work(qp.context);
}

// Rewound packets are work; an algorithm that had none before is told.
void CongestionManager::resume_and_report(QueuePair& qp) {
  if (!Requester::has_work(qp, core_.now)) return;
  const bool quiet = core_.contexts[qp.context].active_head == kNoIndex;
  resume(qp);
  if (quiet) announce_backlog(qp.context);
}

void CongestionManager::retarget(QueuePair& qp) {
  RequesterState& r = qp.requester;
  if (qp.active) return;  // still busy with another one
  r.stops &= static_cast<std::uint8_t>(~requester_stop::target);
  qp.context =
      r.queue.empty() ? kNoIndex : Datagram::context_of(core_, qp, r.queue.front().request);
  if (qp.context == kNoIndex || !Requester::has_work(qp, core_.now)) return;
  // A datagram without payload is not backlog: its context may have been told that nothing waits.
  const CongestionContext& context = core_.contexts[qp.context];
  const bool quiet = context.active_head == kNoIndex && context.backlog_bytes == 0;
  scheduler_.activate(qp);
  if (quiet) announce_backlog(qp.context);
}

// --- events ---

void CongestionManager::report_idle(std::uint32_t index) {
  const CongestionContext& context = core_.contexts[index];
  if (context.active_head != kNoIndex || context.backlog_bytes != 0) return;
  if (!wants(index, cc::Signal::idle)) return;
  cc::Event event;
  event.signal = cc::Signal::idle;
  deliver(index, event);
  core_.contexts[index].told_idle = true;
}

void CongestionManager::announce_backlog(std::uint32_t index) {
  cc::Event event;
  event.signal = cc::Signal::message;
  event.message_bytes = std::max<std::uint64_t>(core_.contexts[index].backlog_bytes, 1);
  deliver(index, event);
}

// Bytes that an algorithm must count for waiting READ and atomic requests. They carry no payload
// but are longer than an empty message, and a receiver that grants bytes has to cover each of them.
std::uint64_t CongestionManager::read_backlog(const QueuePair& qp) {
  constexpr std::uint64_t kRequestBytes = 112;  // an atomic over IPv4 on the wire
  const RequesterState& r = qp.requester;
  const std::uint32_t waiting = r.queue.tail() - r.position.request();
  return waiting != 0 && r.queue.at(r.position.request()).has_response ? waiting * kRequestBytes
                                                                       : 0;
}

// READs, atomics and empty messages that waited behind a fence are not payload: the algorithm was
// told that there is no backlog, and would not ask for a grant for them.
void CongestionManager::report_bare_backlog(const QueuePair& qp) {
  if (!Requester::has_work(qp, core_.now)) return;
  cc::Event event;
  event.signal = cc::Signal::message;
  event.message_bytes = std::max<std::uint64_t>(read_backlog(qp), 1);
  deliver(qp.context, event);
}

void CongestionManager::deliver(std::uint32_t index, cc::Event& event) {
  CongestionContext& context = core_.contexts[index];
  constexpr std::uint32_t kAlways =
      cc::signal_bit(cc::Signal::start) | cc::signal_bit(cc::Signal::tick);
  const bool sample = event.rtt_ns != 0 && (context.wants & cc::kWantsRoundTrips) != 0;
  if (((context.wants | kAlways) & cc::signal_bit(event.signal)) == 0 && !sample) return;
  event.now = to_nanos(core_.now);
  event.sent_total = context.sent_total;
  // A message without payload is still a packet: the algorithm counts one byte for it while it is
  // posted or waits to be sent.
  const bool work = context.active_head != kNoIndex || event.signal == cc::Signal::message;
  event.backlog_bytes = std::max<std::uint64_t>(context.backlog_bytes, work ? 1 : 0);
  if (context.backlog_bytes == 0 && context.active_head != kNoIndex) {
    event.backlog_bytes =
        std::max(event.backlog_bytes, read_backlog(*core_.qps[context.active_head]));
  }
  if (event.signal == cc::Signal::message || event.lost_bytes != 0) context.told_idle = false;
  event.inflight_bytes = context.inflight_bytes;
  event.sent_bytes = context.sent_since_event;
  context.sent_since_event = 0;
  const Rate rate_before = context.decision.rate;
  if (runner_.run(context, event)) grants_.update_want(index, context);
  apply(index, context, rate_before, event);
}

void CongestionManager::apply(std::uint32_t index, CongestionContext& context, Rate rate_before,
                              const cc::Event& event) {
  scheduler_.take_decision(index, context, rate_before);
  if (context.decision.request) {
    context.decision.request = false;
    grants_.send_request(index, event, false);
  }
  scheduler_.place(index, context);
}

// A CNP names the destination of the datagrams, but not their class: all contexts of that peer's
// datagrams slow down.
void CongestionManager::on_datagram_cnp(const wire::IpAddress& source) {
  ++core_.counters.cnps_received;
  for (unsigned c = 0; c < kTrafficClasses; ++c) {
    const std::uint32_t peer = core_.peers.find(source, static_cast<std::uint8_t>(c));
    if (peer == kNoIndex) continue;
    const std::uint32_t own = core_.peers[peer].datagram_context;
    const std::uint32_t context = own != kNoIndex ? own : core_.peers[peer].context;
    if (context == kNoIndex) continue;
    cc::Event event;
    event.signal = cc::Signal::cnp;
    deliver(context, event);
  }
}

// A packet does not name the queue pair that sent it. The sender is the queue pair whose far end
// the packet names; failing that, one of the datagrams to that peer.
void CongestionManager::on_notice(const wire::IpAddress& peer, const NoticeMessage& notice) {
  ++core_.counters.notices_received;
  const std::uint32_t to = core_.peers.find(peer, notice.traffic_class);
  if (to == kNoIndex) return;
  std::uint32_t context = core_.peers[to].datagram_context;
  for (const QueuePair* const qp : core_.qps) {
    if (qp == nullptr || qp->peer != to || qp->remote_number != notice.dest_qpn) continue;
    context = qp->context;
    break;
  }
  if (context == kNoIndex) return;
  cc::Event event;
  event.signal = cc::Signal::notice;
  event.feedback = notice.feedback;
  deliver(context, event);
}

void CongestionManager::on_peer_count_hint(std::uint32_t index, std::uint8_t peer_count_hint) {
  Peer& peer = core_.peers[index];
  if (peer_count_hint == 0 || peer_count_hint == peer.peer_count_hint) return;
  peer.peer_count_hint = peer_count_hint;
  if (peer.context == kNoIndex || !core_.contexts[peer.context].proactive) return;
  cc::Event event;
  event.signal = cc::Signal::tick;
  event.peer_count_hint = peer_count_hint;
  deliver(peer.context, event);
}

void CongestionManager::on_peer_count_hint(const wire::IpAddress& ip, std::uint8_t traffic_class,
                                           std::uint8_t peer_count_hint) {
  const std::uint32_t index = core_.peers.find(ip, traffic_class);
  if (index != kNoIndex) on_peer_count_hint(index, peer_count_hint);
}

void CongestionManager::leave_plugin(cc::AlgorithmId id) {
  for (std::uint32_t index = 0; index < core_.contexts.size(); ++index) {
    const CongestionContext& context = core_.contexts[index];
    if (!context.in_use || context.algorithm != id || context.on_fallback) continue;
    cc::Event event;
    event.signal = cc::Signal::tick;
    deliver(index, event);
  }
}

// --- time ---

void CongestionManager::run_due() {
  std::uint32_t index;
  while ((index = scheduler_.pop_paced()) != Scheduler::kNone) {
    CongestionContext& context = core_.contexts[index];
    if (scheduler_.wake_due(context)) {
      cc::Event event;
      event.signal = cc::Signal::tick;
      deliver(index, event);
    } else {
      scheduler_.place(index, context);
    }
  }
  while ((index = scheduler_.pop_timed()) != Scheduler::kNone) {
    cc::Event event;
    event.signal = cc::Signal::tick;
    deliver(index, event);
  }
}

void CongestionManager::deliver_shares() {
  if (!grants_.uplink_due()) return;
  std::array<cc::ShareOutput, 16> out;
  std::size_t n;
  do {
    n = grants_.poll_uplink(out);
    for (std::size_t i = 0; i < n; ++i) {
      cc::Event event;
      event.signal = cc::Signal::share;
      event.share = &out[i].share;
      deliver(out[i].context, event);
    }
  } while (n == out.size());
  grants_.check_uplink();
}

}  // namespace paceline::transport
