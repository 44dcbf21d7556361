#include "dataplane/probing/prober.h"

namespace paceline::probing {

Prober::Prober(const ProbePlan& plan)
    : plan_(plan),
      peers_(plan.peers),
      outstanding_(kOutstanding),
      next_at_(plan.peers == 0 ? kNever : Picos{0}),
      pace_(plan.session, plan.number) {
  for (Peer& peer : peers_) peer.paths.resize(plan.paths);
}

// Peers in turn; then the other class; then the next path.
std::optional<Prober::Next> Prober::next(Picos now) {
  if (now < next_at_) return std::nullopt;
  next_at_ = now + plan_.interval / 2 +
             Picos{static_cast<std::int64_t>(
                 pace_.below(static_cast<std::uint64_t>(plan_.interval.count) + 1))};
  give_up(now);
  Outstanding& slot = outstanding_[sequence_ % kOutstanding];
  if (slot.in_use) return std::nullopt;  // too many in flight: wait until patience ends one
  slot = {};
  slot.in_use = true;
  slot.began = now;
  slot.sequence = sequence_++;
  slot.peer = peer_;
  slot.path = path_;
  slot.for_clock = for_clock_;
  PathCounts& counts = peers_[peer_].paths[path_];
  ++counts.sent;
  ++totals_.sent;
  Next out;
  out.peer = peer_;
  out.message.for_clock = for_clock_;
  out.message.path = path_;
  out.message.session = plan_.session;
  out.message.sequence = slot.sequence;
  if (++peer_ == plan_.peers) {
    peer_ = 0;
    for_clock_ = !for_clock_;
    if (for_clock_ && ++path_ == plan_.paths) path_ = 0;
  }
  return out;
}

void Prober::not_sent(const Next& probe) {
  Outstanding* const slot = find(probe.message.sequence);
  if (slot == nullptr) return;
  --peers_[slot->peer].paths[slot->path].sent;
  --totals_.sent;
  slot->in_use = false;
}

Prober::Outstanding* Prober::find(std::uint32_t sequence) {
  Outstanding& slot = outstanding_[sequence % kOutstanding];
  return slot.in_use && slot.sequence == sequence ? &slot : nullptr;
}

void Prober::sent(std::uint32_t sequence, Nanos at) {
  Outstanding* const probe = find(sequence);
  if (probe == nullptr) return;
  probe->sent = at;
  probe->has_sent = true;
  complete(*probe);
}

void Prober::answered(const ProbeMessage& message, std::uint32_t peer, Nanos at) {
  if (message.session != plan_.session) return;
  Outstanding* const probe = find(message.sequence);
  if (probe == nullptr || probe->peer != peer) return;
  if (message.kind == ProbeKind::answer && !probe->has_returned) {
    probe->returned = at;
    probe->has_returned = true;
  } else if (message.kind == ProbeKind::times) {
    probe->received = message.received;
    probe->answered = message.answered;
    probe->has_times = true;
  }
  complete(*probe);
}

void Prober::complete(Outstanding& probe) {
  if (!probe.has_sent || !probe.has_returned || !probe.has_times) return;
  probe.in_use = false;
  Peer& peer = peers_[probe.peer];
  ++peer.paths[probe.path].answered;
  ++totals_.answered;
  const ProbeSample sample{{probe.sent, probe.received, probe.answered, probe.returned},
                           probe.path};
  // If a host answered before it received, its clock was set in between.
  if (sample.host() < 0 || sample.fabric() < 0) return;
  if (probe.for_clock) {
    peer.clock.add(sample.times);
    return;
  }
  peer.latest = sample;
  latest_peer_ = probe.peer;
  if (peer.samples.size() < plan_.kept) {
    peer.samples.push_back(sample);
  } else if (plan_.kept != 0) {
    peer.samples[peer.oldest] = sample;
    peer.oldest = (peer.oldest + 1) % plan_.kept;
  }
}

// An answer came, but not the time at which it left: the probe is not lost, but measures nothing.
void Prober::drop(Outstanding& probe) {
  probe.in_use = false;
  PathCounts& counts = peers_[probe.peer].paths[probe.path];
  ++(probe.has_returned ? counts.answered : counts.lost);
  ++(probe.has_returned ? totals_.answered : totals_.lost);
}

void Prober::give_up(Picos now) {
  for (; oldest_ != sequence_; ++oldest_) {
    Outstanding* const probe = find(oldest_);
    if (probe == nullptr) continue;
    if (now - probe->began < plan_.patience) return;
    drop(*probe);
  }
}

PeerFigures Prober::figures(std::uint32_t peer) const {
  const Peer& from = peers_[peer];
  return {from.paths, from.samples, from.clock.reading()};
}

std::optional<OneWay> Prober::one_way(std::uint32_t peer) const {
  if (peer >= peers_.size() || !peers_[peer].latest) return std::nullopt;
  const auto clock = peers_[peer].clock.reading();
  if (!clock) return std::nullopt;
  const ProbeTimes& times = peers_[peer].latest->times;
  return OneWay{clock->one_way_there(times), clock->one_way_back(times)};
}

}  // namespace paceline::probing
