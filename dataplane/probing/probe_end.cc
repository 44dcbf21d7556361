#include "dataplane/probing/probe_end.h"

#include <algorithm>

namespace paceline::probing {

ProbeEnd::ProbeEnd(Picos now, transport::Engine& engine, std::uint32_t pd, std::uint32_t qkey,
                   const HostClock& clock)
    : engine_(engine), clock_(clock), now_(now) {
  pair_.emplace(now, engine,
                DatagramPair::Shape{pd, qkey, static_cast<std::uint16_t>(kProbeBytes), kAtOnce});
}

// Datagrams that wait to be sent end with the queue pair; then nothing uses the handles.
ProbeEnd::~ProbeEnd() {
  pair_.reset();
  for (const Known& known : peers_) {
    for (const std::uint32_t handle : known.handles) engine_.destroy_address_handle(now_, handle);
  }
}

void ProbeEnd::begin(Picos now, const ProbePlan& plan, std::span<const ProbePeer> peers,
                     std::uint8_t traffic_class) {
  now_ = now;
  for (const ProbePeer& peer : peers) {
    Known& known = peers_.emplace_back(Known{peer, {}});
    for (const std::uint8_t of : {traffic_class, kControlClass}) {
      transport::QpPath path = peer.path;
      path.traffic_class = of;
      for (std::uint16_t i = 0; i < plan.paths; ++i) {
        path.source_port = static_cast<std::uint16_t>(kFirstPort + i);
        known.handles.push_back(engine_.create_address_handle(now, pair_->pd(), path));
      }
    }
    by_address_[peer.path.ip] = static_cast<std::uint32_t>(peers_.size() - 1);
  }
  ProbePlan own = plan;
  own.peers = static_cast<std::uint32_t>(peers_.size());
  prober_.emplace(own);
}

std::optional<OneWay> ProbeEnd::one_way_to(const wire::IpAddress& peer) const {
  const auto at = by_address_.find(peer);
  if (!prober_ || at == by_address_.end()) return std::nullopt;
  return prober_->one_way(at->second);
}

bool ProbeEnd::send(Picos now, std::uint32_t to, const ProbeMessage& message, std::uint64_t wr_id) {
  const Known& known = peers_[to];
  const std::size_t paths = known.handles.size() / kClasses;
  transport::WorkRequest request;
  request.wr_id = wr_id;
  request.signaled = wr_id != kSilent;
  request.address_handle = known.handles[(message.for_clock ? paths : 0) + message.path];
  request.target_qp_number = known.peer.qp_number;
  request.target_qkey = known.peer.qkey;
  return pair_->send(now, request, write_probe(message));
}

// Probes are answered at once: so many answers can be in flight only if nothing leaves.
bool ProbeEnd::answer(Picos now, std::uint32_t to, const ProbeMessage& probe) {
  last_answer_ = (last_answer_ + 1) % kAtOnce;
  Answer& place = answers_[last_answer_];
  if (place.in_use) return false;
  place.peer = to;
  place.message = probe;
  place.message.kind = ProbeKind::times;
  place.message.received = clock_.at(now);
  ProbeMessage message = probe;
  message.kind = ProbeKind::answer;
  place.in_use = send(now, to, message, kAnswer + last_answer_);
  return place.in_use;
}

// The time of arrival is now, after the engine's poll, not the beginning of the poll. A probe may
// have come in between, and clocks cannot be compared if it seems to arrive before it was sent.
bool ProbeEnd::take(Picos now, const DatagramPair::Arrival& arrival) {
  const auto message = arrival.whole ? read_probe(arrival.bytes) : std::nullopt;
  const auto from = by_address_.find(arrival.source);
  const bool good = message && from != by_address_.end() &&
                    peers_[from->second].peer.qp_number == arrival.source_qp_number &&
                    message->path < prober_->plan().paths;
  if (good && message->kind != ProbeKind::probe) {
    prober_->answered(*message, from->second, clock_.at(now));
    return false;
  }
  if (good && answer(now, from->second, *message)) return true;
  ++refused_;
  return false;
}

// Handles a completion of a probe or an answer.
bool ProbeEnd::has_left(Picos now, const transport::Completion& completion) {
  const bool well = completion.status == transport::CompletionStatus::success;
  if (completion.wr_id < kAnswer) {
    if (well) prober_->sent(static_cast<std::uint32_t>(completion.wr_id), clock_.at(completion.at));
    return false;
  }
  if (completion.wr_id == kSilent) return false;
  Answer& place = answers_[completion.wr_id - kAnswer];
  place.in_use = false;
  place.message.answered = clock_.at(completion.at);
  return well && send(now, place.peer, place.message, kSilent);
}

bool ProbeEnd::send_due(Picos now) {
  const auto due = prober_->next(now);
  if (!due) return false;
  if (send(now, due->peer, due->message, due->message.sequence)) return true;
  prober_->not_sent(*due);
  return false;
}

bool ProbeEnd::work(Picos now) {
  now_ = now;
  bool posted = false;
  pair_->sent([&](const transport::Completion& one) { posted |= has_left(now, one); });
  pair_->collect(now, [&](const DatagramPair::Arrival& one) { posted |= take(now, one); });
  return send_due(now) || posted;
}

}  // namespace paceline::probing
