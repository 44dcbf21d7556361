// Congestion control changed under way: other values, or another algorithm, for queue pairs that
// carry traffic. Messages do not notice; docs/transport.md, "Changing congestion control under
// way".
//
// Values are replaced at once: blocks are read anew with every event. What has been decided by the
// old ones holds until the context's next event, so every context gets one. Contexts are visited
// one after the other over kChangeRtts round trips, hosts out of step with one another: if all
// began again at the same time, the queue that they share would tell of nothing else.
#include <algorithm>
#include <string>

#include "cc/registry.h"
#include "dataplane/transport/control_plane.h"
#include "dataplane/transport/queue_pair_figures.h"
#include "dataplane/transport/scheduler.h"

namespace paceline::transport {

namespace {

// Queue pairs that a poll visits at most, and how many such polls there are in the whole span:
// beyond their product the change takes longer instead of holding up traffic.
constexpr std::uint32_t kVisitsPerPoll = 64;
constexpr std::int64_t kChangeSteps = 64;
// How long after its own change a port goes on granting to peers that have not changed yet: two
// hosts that are told at the same time may hear it a millisecond apart.
constexpr Picos kGrantsOutlive = picos_from_micros(2000);
// Active queue pairs of a channel that are counted one by one to share what it had.
constexpr std::uint32_t kCountedSharers = 64;

// UD: where the next datagram of the queue pair goes; 0: there is none, or it is of another type.
std::uint32_t next_handle(const QueuePair& qp) {
  if (qp.config.type != QpType::ud || qp.requester.queue.empty()) return 0;
  return qp.requester.queue.front().request.address_handle;
}

std::string wrong_values(const char* which, const CcChoice& choice) {
  const cc::AlgorithmInfo* info = cc::find(choice.algorithm);
  if (info == nullptr) return std::string(which) + ": no such algorithm";
  if (choice.values.size() == info->params.size()) return {};
  return std::string(which) + ": " + std::string(info->name) + " has " +
         std::to_string(info->params.size()) + " parameters, given are " +
         std::to_string(choice.values.size());
}

// As b/s.
std::uint64_t bytes_per_round_trip(std::uint64_t bytes, std::uint64_t rtt_ns) {
  return std::min(bytes, ~std::uint64_t{0} / 8'000'000'000) * 8'000'000'000 / rtt_ns;
}

Picos change_span(const EngineConfig& config) {
  return picos_from_nanos(kChangeRtts * std::int64_t{config.base_rtt_ns});
}

}  // namespace

bool ControlPlane::is_proactive(cc::AlgorithmId id) {
  const cc::AlgorithmInfo* info = cc::find(id);
  return info != nullptr && info->proactive;
}

bool ControlPlane::has_channels(cc::AlgorithmId algorithm) {
  return cc::find(algorithm)->key == cc::ContextKey::per_peer_class;
}

std::string ControlPlane::refusal(const CcSetup& setup) const {
  if (std::string wrong = wrong_values("primary", setup.primary); !wrong.empty()) return wrong;
  if (std::string wrong = wrong_values("fallback", setup.fallback); !wrong.empty()) return wrong;
  if (is_proactive(setup.fallback.algorithm)) return "fallback: must be a reactive algorithm";
  if (cc::is_plugin(setup.fallback.algorithm)) return "fallback: must be a built-in algorithm";
  return {};
}

void ControlPlane::reconfigure(const CcSetup& setup, std::uint8_t arm, std::uint8_t epoch) {
  const Before before = before_change();
  setup_ = setup;
  if (second_ != nullptr) {
    second_->in_force = false;
    second_->clusters.clear();
  }
  own_arm_ = 0;
  arm_ = arm;
  epoch_ = epoch;
  take_values(setup_, core_.params);
  begin_change(before);
}

// What is in force has been replaced; `before`: as it was.
void ControlPlane::begin_change(const Before& before) {
  ++generation_;
  for (std::uint32_t i = 0; second_ != nullptr && i < core_.peers.size(); ++i) {
    place(core_.peers[i]);
  }
  const std::uint8_t governing = governing_arm();
  const CcSetup& governor = setup_on(governing);
  grants_ = is_proactive(setup().primary.algorithm);
  proactive_ = is_proactive(governor.primary.algorithm);
  if (proactive_) {
    // The next one's halves take over at once. Contexts that have not changed yet ask them, too:
    // the messages are the same, and what they grant is a rate and a ceiling to both.
    if (grants_ && core_.receiver != nullptr && setup().primary.algorithm != before.receiving) {
      drop_receiver();
    }
    if (governor.primary.algorithm != before.governing) sender_.reset();
    make_port_parts();
    const cc::ParamBlock& params = core_.params_on(governing, governor.primary.algorithm);
    if (sender_ != nullptr) sender_->set_params(params);
    if (grants_) {
      if (core_.receiver != nullptr) core_.receiver->set_params(params);
      change_.receiver_until = kNever;
    }
    if (!before.proactive || (grants_ && !before.grants)) greet_again();
  }
  const std::uint32_t first = changing() ? change_.next() : 0;
  change_.begin = core_.now;
  change_.resume_at = core_.now;
  change_.queue_pairs = core_.qps.size();
  change_.handles = core_.handles.size();
  change_.first = change_.places() == 0 ? 0 : first % change_.places();
  change_.visited = 0;
  core_.control_active = true;
  if (!changing()) finish_change();
}

// Where peers have to say what they can do: this end can more than when it was asked last.
void ControlPlane::greet_again() {
  if (core_.config.peers != PeerPolicy::discover || !core_.config.speak_control) return;
  for (std::uint32_t i = 0; i < core_.peers.size(); ++i) {
    Peer& peer = core_.peers[i];
    greet(i);
    const bool grants = (peer.features & kFeatureGrants) != 0;
    peer.status = grants ? PeerStatus::native : PeerStatus::unknown;
  }
}

// When the next queue pair is to be visited. Each has its place in the span, and hosts that have
// few are not all early.
Picos ControlPlane::change_due() const {
  if (!changing()) return change_.receiver_until;
  const auto total = static_cast<std::int64_t>(change_.places());
  const auto offset = static_cast<std::int64_t>(wire::hash_value(core_.config.address) >> 7 & 0xFF);
  const std::int64_t place = std::int64_t{change_.visited} * 256 + offset;
  const Picos due = change_.begin + Picos{change_span(core_.config).count / 256 * place / total};
  return later(due, change_.resume_at);
}

void ControlPlane::go_on_changing() {
  if (!changing()) {
    drop_receiver();
    return;
  }
  for (std::uint32_t n = 0; change_due() <= core_.now; ++n) {
    if (n == kVisitsPerPoll) {
      change_.resume_at = core_.now + Picos{change_span(core_.config).count / kChangeSteps};
      return;
    }
    const std::uint32_t place = change_.next();
    ++change_.visited;
    if (place < change_.queue_pairs) {
      if (QueuePair* qp = core_.qps[place]) bring_home(*qp);
    } else {
      AddressHandle& handle = core_.handles[place - change_.queue_pairs];
      if (handle.in_use) bring_home(handle);
    }
    if (!changing()) {
      finish_change();
      return;
    }
  }
}

// All contexts are what the setup says.
void ControlPlane::finish_change() {
  if (grants_) return;
  if (!proactive_) sender_.reset();
  change_.receiver_until = core_.receiver == nullptr ? kNever : core_.now + kGrantsOutlive;
  core_.control_active =
      core_.receiver != nullptr || sender_ != nullptr || has_plugins_ || !waiting_hello_.empty();
}

// Peers that still ask hear nothing more: their fallback decides for them.
void ControlPlane::drop_receiver() {
  change_.receiver_until = kNever;
  for (std::uint32_t i = 0; i < core_.peers.size(); ++i) core_.peers[i].counters = nullptr;
  core_.receiver.reset();
  core_.control_active = sender_ != nullptr || has_plugins_ || !waiting_hello_.empty();
}

// What the one algorithm leaves to the next: what it lets through, be it by rate or by window.
cc::Handover ControlPlane::hand_over(const CongestionContext& context, const QueuePair* qp) const {
  cc::Handover handover;
  if (qp != nullptr) {
    const RoundTrip round_trip = round_trip_of(*qp);
    handover.srtt_ns = round_trip.smoothed_ns;
    handover.min_rtt_ns = round_trip.least_ns;
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
  // At line rate below a ceiling: what it lets through is what the ceiling leaves under way.
  if (context.proactive && context.decision.ceiling != cc::kUnlimited &&
      context.decision.rate >= core_.info.link_rate) {
    const std::uint64_t gone =
        context.sent_total - std::min(context.inflight_bytes, context.sent_total);
    const std::uint64_t open = context.decision.ceiling - std::min(gone, context.decision.ceiling);
    bps = std::min(bps, bytes_per_round_trip(open, std::max(core_.config.base_rtt_ns, 1U)));
  }
  const bool has_work = context.active_head != kNoIndex || context.backlog_bytes != 0;
  if (bps == 0 && context.proactive && has_work) {
    // It waits for its turn: no reason to go ahead of those that have had it.
    bps = cc::waiting_rate(context.algorithm, core_.params_of(context), core_.info.link_rate).bps;
  }
  handover.rate = Rate{bps};
  return handover;
}

// A context that runs the right algorithm: other values, arm, epoch.
void ControlPlane::tell_context(std::uint32_t index, CongestionContext& context) {
  const auto generation = static_cast<std::uint8_t>(generation_);
  if (context.generation == generation) return;
  context.generation = generation;
  context.side = core_.peers[context.peer].arm;
  context.arm = number_of(context.side);
  context.epoch = epoch_;
  if (context.on_fallback && context.fallback != setup_on(context.side).fallback.algorithm) {
    cc::Event event;
    event.now = to_nanos(core_.now);
    event.sent_total = context.sent_total;
    begin_fallback(context, event);
  }
  cc::Event event;
  event.signal = cc::Signal::tick;
  scheduler_.deliver(index, event);
}

void ControlPlane::bring_home(QueuePair& qp) {
  if (qp.config.type == QpType::ud || qp.context == kNoIndex) return;
  const Peer& peer = core_.peers[qp.peer];
  const cc::AlgorithmId target = algorithm_for(peer);
  CongestionContext& context = core_.contexts[qp.context];
  if (context.algorithm == target) {
    tell_context(qp.context, context);
  } else if ((peer.context == qp.context) == has_channels(target)) {
    const bool alone = context.queue_pairs == 1;
    convert(qp.context, target, hand_over(context, alone ? &qp : nullptr));
  } else {
    move(qp, target);
  }
}

void ControlPlane::bring_home(AddressHandle& handle) {
  const Peer& peer = core_.peers[handle.peer];
  const cc::AlgorithmId target = algorithm_for(peer);
  CongestionContext& context = core_.contexts[handle.context];
  if (context.algorithm == target) {
    tell_context(handle.context, context);
  } else if ((peer.context == handle.context) == has_channels(target)) {
    convert(handle.context, target, hand_over(context, nullptr));
  } else {
    move(handle, target);
  }
}

// The same traffic in the same context, and another algorithm for it.
void ControlPlane::convert(std::uint32_t index, cc::AlgorithmId target,
                           const cc::Handover& handover) {
  CongestionContext& context = core_.contexts[index];
  if (context.proactive) close_channel(index);
  context.generation = static_cast<std::uint8_t>(generation_);
  context.arm = number_of(core_.peers[context.peer].arm);
  context.epoch = epoch_;
  scheduler_.replace_algorithm(index, target, handover);
}

// What a context gives to each that leaves it in this change: an equal part of what it had when the
// first one left. Those that have nothing to send have no part in it.
Rate ControlPlane::part_of(CongestionContext& context, Rate rate) {
  const auto generation = static_cast<std::uint8_t>(generation_);
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

// Others go on in the context that some work has left.
void ControlPlane::settle_left(std::uint32_t index, bool had_work) {
  if (core_.contexts[index].place == ContextPlace::blocked) scheduler_.refresh(index);
  if (had_work) scheduler_.report_idle(index);
}

// From a context of its own into the peer's channel, or out of it.
void ControlPlane::move(QueuePair& qp, cc::AlgorithmId target) {
  const std::uint32_t from = qp.context;
  CongestionContext& left = core_.contexts[from];
  cc::Handover handover = hand_over(left, &qp);
  handover.rate = part_of(left, handover.rate);
  const bool had_work = scheduler_.has_work(qp);
  const std::uint64_t backlog = qp.requester.backlog_bytes + qp.responder.backlog_bytes;
  leave_context(qp);
  if (left.in_use) settle_left(from, had_work || backlog != 0);
  join_context(qp, target, &handover);
  CongestionContext& context = core_.contexts[qp.context];
  context.inflight_bytes += qp.requester.inflight_bytes;
  context.backlog_bytes += backlog;
  if (had_work || backlog != 0) {
    cc::Event event;
    event.signal = cc::Signal::message;
    event.message_bytes = std::max<std::uint64_t>(backlog, 1);
    scheduler_.deliver(qp.context, event);
  }
  if (had_work) scheduler_.activate(qp);
}

// Bytes of the datagrams that are queued for the handle; queue pairs that would send one next are
// taken out of its context.
std::uint64_t ControlPlane::leave_datagrams(const AddressHandle& handle) {
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

// The same for datagrams: all that are queued for the handle go with it.
void ControlPlane::move(AddressHandle& handle, cc::AlgorithmId target) {
  Peer& peer = core_.peers[handle.peer];
  const std::uint32_t from = handle.context;
  CongestionContext& left = core_.contexts[from];
  cc::Handover handover = hand_over(left, nullptr);
  handover.inflight_bytes = 0;  // nothing acknowledges datagrams
  handover.rate = part_of(left, handover.rate);
  std::uint32_t& place = has_channels(target) ? peer.context : peer.datagram_context;
  if (place == kNoIndex) {
    place = make_context(handle.peer, target, handle.path.traffic_class, 0, &handover);
  }
  const std::uint32_t to = place;
  ++core_.contexts[to].queue_pairs;
  const std::uint64_t bytes = handle.uses == 0 ? 0 : leave_datagrams(handle);
  const bool had_work = handle.uses != 0;
  handle.context = to;
  left.backlog_bytes -= bytes;
  core_.contexts[to].backlog_bytes += bytes;
  if (had_work) {
    scheduler_.announce_backlog(to);
    for (QueuePair* qp : core_.qps) {
      if (qp != nullptr && next_handle(*qp) == handle.number) scheduler_.retarget(*qp);
    }
    settle_left(from, true);
  }
  leave_context(from);
}

}  // namespace paceline::transport
