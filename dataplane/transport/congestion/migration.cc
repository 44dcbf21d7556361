#include "dataplane/transport/congestion/migration.h"

#include <algorithm>

#include "cc/dispatch.h"
#include "dataplane/transport/qp/queue_pair_figures.h"

namespace paceline::transport {

namespace {

// The most queue pairs that a poll visits, and the most such polls in the whole span. Beyond the
// product of both, the change takes longer, but does not hold up traffic.
constexpr std::uint32_t kVisitsPerPoll = 64;
constexpr std::int64_t kChangeSteps = 64;
// How long after its own change a port still grants to peers that have not changed yet: hosts that
// get the change at the same time may apply it a millisecond apart.
constexpr Picos kGrantsOutlive = picos_from_micros(2000);
// So many active queue pairs of a channel are counted one by one to divide the channel's rate.
constexpr std::uint32_t kCountedSharers = 64;

// UD: where the next datagram of the queue pair goes; 0: it has none, or is of another type.
std::uint32_t next_handle(const QueuePair& qp) {
  if (qp.config.type != QpType::ud || qp.requester.queue.empty()) return 0;
  return qp.requester.queue.front().request.address_handle;
}

// As b/s.
std::uint64_t bytes_per_round_trip(std::uint64_t bytes, std::uint64_t rtt_ns) {
  return std::min(bytes, ~std::uint64_t{0} / 8'000'000'000) * 8'000'000'000 / rtt_ns;
}

Picos change_span(const EngineConfig& config) {
  return picos_from_nanos(kChangeRtts * std::int64_t{config.base_rtt_ns});
}

}  // namespace

void Migration::begin(const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch) {
  begin(setups_.install(setup, arm, epoch));
}

void Migration::begin(const ArmsByPeer& arms, std::uint8_t epoch) {
  begin(setups_.install(arms, epoch));
}

void Migration::begin(const CongestionSetups::Before& before) {
  grants_.take_setup(before);
  if (setups_.grants()) change_.receiver_until = kNever;
  if (setups_.proactive() && (!before.proactive || (setups_.grants() && !before.grants))) {
    peers_.resend_hellos();
  }
  const std::uint32_t first = under_way() ? change_.next() : 0;
  change_.begin = core_.now;
  change_.resume_at = core_.now;
  change_.queue_pairs = core_.qps.size();
  change_.handles = core_.handles.size();
  change_.first = change_.places() == 0 ? 0 : first % change_.places();
  change_.visited = 0;
  core_.control_active = true;
  if (!under_way()) finish();
}

// When to visit the next queue pair. Each has its place in the span, so that hosts with few queue
// pairs do not all change early.
Picos Migration::next_visit() const {
  const auto total = static_cast<std::int64_t>(change_.places());
  const auto offset = static_cast<std::int64_t>(wire::hash_value(core_.config.address) >> 7 & 0xFF);
  const std::int64_t place = std::int64_t{change_.visited} * 256 + offset;
  const Picos due = change_.begin + Picos{change_span(core_.config).count / 256 * place / total};
  return later(due, change_.resume_at);
}

void Migration::poll() {
  if (next_deadline() > core_.now) [[likely]]
    return;
  if (!under_way()) {
    drop_receiver();
    return;
  }
  for (std::uint32_t n = 0; next_deadline() <= core_.now; ++n) {
    if (n == kVisitsPerPoll) {
      change_.resume_at = core_.now + Picos{change_span(core_.config).count / kChangeSteps};
      return;
    }
    const std::uint32_t place = change_.next();
    ++change_.visited;
    if (place < change_.queue_pairs) {
      if (QueuePair* qp = core_.qps[place]) migrate(*qp);
    } else {
      AddressHandle& handle = core_.handles[place - change_.queue_pairs];
      if (handle.in_use) migrate(handle);
    }
    if (!under_way()) {
      finish();
      return;
    }
  }
}

// All contexts follow the setup.
void Migration::finish() {
  if (setups_.grants()) return;
  change_.receiver_until = grants_.settle() ? core_.now + kGrantsOutlive : kNever;
  core_.control_active = anything_left();
}

void Migration::drop_receiver() {
  change_.receiver_until = kNever;
  grants_.drop_downlink();
  core_.control_active = anything_left();
}

// The passing of time can still cause something.
bool Migration::anything_left() const {
  return grants_.active() || watch_.any() || peers_.waiting();
}

// The state that one algorithm passes to the next: how much it lets through, by rate or by window.
cc::Handover Migration::hand_over(const CongestionContext& context, const QueuePair* qp) const {
  cc::Handover handover;
  if (qp != nullptr) {
    const RoundTripEstimate& round_trip = round_trip_of(*qp);
    handover.srtt_ns = round_trip.smoothed_ns();
    handover.min_rtt_ns = round_trip.least_ns();
    handover.inflight_bytes = qp->requester.inflight_bytes;
  } else {
    handover.inflight_bytes = context.inflight_bytes;
  }
  std::uint64_t bps = context.decision.rate.bps;
  const std::uint64_t window = context.decision.window_bytes;
  if (window != cc::kUnlimited) {
    const std::uint64_t rtt_ns =
        handover.srtt_ns != 0 ? handover.srtt_ns : std::max(core_.config.base_rtt_ns, 1U);
    bps = std::min(bps, bytes_per_round_trip(window, rtt_ns));
  }
  // At line rate below a ceiling, the ceiling limits what is in flight.
  if (context.proactive && context.decision.ceiling != cc::kUnlimited &&
      context.decision.rate >= core_.info.link_rate) {
    const std::uint64_t gone =
        context.sent_total - std::min(context.inflight_bytes, context.sent_total);
    const std::uint64_t open = context.decision.ceiling - std::min(gone, context.decision.ceiling);
    bps = std::min(bps, bytes_per_round_trip(open, std::max(core_.config.base_rtt_ns, 1U)));
  }
  const bool has_work = context.active_head != kNoIndex || context.backlog_bytes != 0;
  if (bps == 0 && context.proactive && has_work) {
    // The context waits for its turn: it must not go ahead of contexts that have had theirs.
    bps = cc::waiting_rate(context.algorithm, core_.params_of(context), core_.info.link_rate).bps;
  }
  handover.rate = Rate{bps};
  return handover;
}

// Tells a context that runs the right algorithm of other values, arm and epoch.
void Migration::notify(std::uint32_t index, CongestionContext& context) {
  const auto generation = static_cast<std::uint8_t>(setups_.generation());
  if (context.generation == generation) return;
  context.generation = generation;
  context.setup_slot = core_.peers[context.peer].setup_slot;
  context.arm = setups_.number_of(context.setup_slot);
  context.epoch = setups_.epoch();
  if (context.on_fallback &&
      context.fallback != setups_.on(context.setup_slot).fallback.algorithm) {
    congestion_.change_fallback(context);
  }
  cc::Event event;
  event.signal = cc::Signal::tick;
  congestion_.deliver(index, event);
}

void Migration::migrate(QueuePair& qp) {
  if (qp.config.type == QpType::ud || qp.context == kNoIndex) return;
  const Peer& peer = core_.peers[qp.peer];
  const cc::AlgorithmId target = setups_.algorithm_for(peer);
  CongestionContext& context = core_.contexts[qp.context];
  if (context.algorithm == target) {
    notify(qp.context, context);
  } else if ((peer.context == qp.context) == CongestionSetups::has_channels(target)) {
    const bool alone = context.queue_pairs == 1;
    convert(qp.context, target, hand_over(context, alone ? &qp : nullptr));
  } else {
    move(qp, target);
  }
}

void Migration::migrate(AddressHandle& handle) {
  const Peer& peer = core_.peers[handle.peer];
  const cc::AlgorithmId target = setups_.algorithm_for(peer);
  CongestionContext& context = core_.contexts[handle.context];
  if (context.algorithm == target) {
    notify(handle.context, context);
  } else if ((peer.context == handle.context) == CongestionSetups::has_channels(target)) {
    convert(handle.context, target, hand_over(context, nullptr));
  } else {
    move(handle, target);
  }
}

// The same traffic stays in the same context, with another algorithm.
void Migration::convert(std::uint32_t index, cc::AlgorithmId target, const cc::Handover& handover) {
  CongestionContext& context = core_.contexts[index];
  if (context.proactive) congestion_.close_channel(index);
  context.generation = static_cast<std::uint8_t>(setups_.generation());
  context.arm = setups_.number_of(core_.peers[context.peer].setup_slot);
  context.epoch = setups_.epoch();
  congestion_.replace_algorithm(index, target, handover);
}

// The rate that a context passes to each queue pair that leaves it in this change: an equal part of
// its rate when the first one left. Queue pairs with nothing to send get none.
Rate Migration::part_of(CongestionContext& context, Rate rate) {
  const auto generation = static_cast<std::uint8_t>(setups_.generation());
  if (context.generation != generation) {
    context.generation = generation;
    context.sharers = 0;
    std::uint32_t at = context.active_head;
    while (at != kNoIndex && context.sharers < kCountedSharers) {
      ++context.sharers;
      at = core_.qps[at]->next_active;
      if (at == context.active_head) at = kNoIndex;
    }
    if (at != kNoIndex) context.sharers = context.queue_pairs;
  }
  return Rate{rate.bps / std::max(context.sharers, 1U)};
}

// Some work has left the context; the other queue pairs continue in it.
void Migration::settle_left(std::uint32_t index, bool had_work) {
  congestion_.release(index);
  if (had_work) congestion_.report_idle(index);
}

// Moves the queue pair from a context of its own into the peer's channel, or out of it.
void Migration::move(QueuePair& qp, cc::AlgorithmId target) {
  const std::uint32_t from = qp.context;
  CongestionContext& left = core_.contexts[from];
  cc::Handover handover = hand_over(left, &qp);
  handover.rate = part_of(left, handover.rate);
  const bool had_work = scheduler_.has_work(qp);
  const std::uint64_t backlog = qp.requester.backlog_bytes + qp.responder.backlog_bytes;
  congestion_.leave_context(qp);
  if (left.in_use) settle_left(from, had_work || backlog != 0);
  congestion_.join_context(qp, target, &handover);
  CongestionContext& context = core_.contexts[qp.context];
  context.inflight_bytes += qp.requester.inflight_bytes;
  context.backlog_bytes += backlog;
  if (had_work || backlog != 0) {
    cc::Event event;
    event.signal = cc::Signal::message;
    event.message_bytes = std::max<std::uint64_t>(backlog, 1);
    congestion_.deliver(qp.context, event);
  }
  if (had_work) scheduler_.activate(qp);
}

// Bytes of the datagrams that are queued for the handle. Queue pairs that would send one of them
// next are taken out of its context.
std::uint64_t Migration::leave_datagrams(const AddressHandle& handle) {
  std::uint64_t bytes = 0;
  for (QueuePair* qp : core_.qps) {
    if (qp == nullptr || qp->config.type != QpType::ud) continue;
    const SendQueue& queue = qp->requester.queue;
    for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
      const QueuedRequest& request = queue.at(p).request;
      if (request.address_handle == handle.number) bytes += request.length;
    }
    if (next_handle(*qp) == handle.number) scheduler_.deactivate(*qp);
  }
  return bytes;
}

// The same for an address handle: all datagrams that are queued for it move with it.
void Migration::move(AddressHandle& handle, cc::AlgorithmId target) {
  Peer& peer = core_.peers[handle.peer];
  const std::uint32_t from = handle.context;
  CongestionContext& left = core_.contexts[from];
  cc::Handover handover = hand_over(left, nullptr);
  handover.inflight_bytes = 0;  // nothing acknowledges datagrams
  handover.rate = part_of(left, handover.rate);
  std::uint32_t& place =
      CongestionSetups::has_channels(target) ? peer.context : peer.datagram_context;
  if (place == kNoIndex) {
    place = congestion_.make_context(handle.peer, target, handle.path.traffic_class, 0, &handover);
  }
  const std::uint32_t to = place;
  ++core_.contexts[to].queue_pairs;
  const std::uint64_t bytes = handle.uses == 0 ? 0 : leave_datagrams(handle);
  const bool had_work = handle.uses != 0;
  handle.context = to;
  left.backlog_bytes -= bytes;
  core_.contexts[to].backlog_bytes += bytes;
  if (had_work) {
    congestion_.announce_backlog(to);
    for (QueuePair* qp : core_.qps) {
      if (qp != nullptr && next_handle(*qp) == handle.number) congestion_.retarget(*qp);
    }
    settle_left(from, true);
  }
  congestion_.leave_context(from);
}

void Migration::adopt_peer(const PeerNews& news) {
  Peer& peer = core_.peers[news.peer];
  if (peers_.offers_selective() && (news.features & kFeatureXack) != 0) {
    peer.selective = true;
    peer.telemetry = core_.info.telemetry && (news.features & kFeatureTelemetry) != 0;
    for (QueuePair* qp : core_.qps) {
      if (qp != nullptr && qp->peer == news.peer) offer_selective(*qp);
    }
    if (!setups_.proactive()) peer.status = PeerStatus::paceline;
  }
  // The peer's traffic moves to the channel.
  if (setups_.proactive() && (news.features & kFeatureGrants) != 0 &&
      peer.status != PeerStatus::paceline) {
    peer.status = PeerStatus::paceline;
    migrate_all(news.peer);
  }
  congestion_.on_peer_count_hint(news.peer, news.peer_count_hint);
  // The number of peers grew between our question and this answer.
  peers_.tell_growth(news.peer);
}

void Migration::migrate_all(std::uint32_t peer) {
  for (QueuePair* qp : core_.qps) {
    if (qp != nullptr && qp->peer == peer) migrate(*qp);
  }
  for (std::uint32_t i = 0; i < core_.handles.size(); ++i) {
    AddressHandle& handle = core_.handles[i];
    if (handle.in_use && handle.peer == peer) migrate(handle);
  }
}

void Migration::offer_selective(QueuePair& qp) {
  if (qp.selective != nullptr || qp.unreliable) return;
  if (qp.peer == kNoIndex || !core_.peers[qp.peer].selective || !can_receive(qp.state)) return;
  const EngineConfig& config = core_.config;
  // A peer that says HELLO may not have received our answer yet. Its first XACK shows that it has.
  qp.requester.peer_selective = config.peers == PeerPolicy::paceline;
  qp.selective = std::make_unique<SelectiveState>(config.window_packets);
  const unsigned paths = config.multipath == Multipath::none ? 1 : config.paths;
  const unsigned run = config.multipath == Multipath::chunk ? config.path_run : 1;
  qp.selective->receive.read_by_any_path = qp.requester.peer_selective;
  qp.selective->paths = PathSet(qp.path.source_port, paths, run, config.planes);
  qp.selective->send.patience.expect_reordering(paths == 1 ? 0 : 8);
  qp.selective->receive.early.start(qp.responder.position.expected());
  qp.responder.selective = true;
}

}  // namespace paceline::transport
