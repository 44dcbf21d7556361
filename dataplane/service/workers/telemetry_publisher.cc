#include "dataplane/service/workers/telemetry_publisher.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "cc/registry.h"
#include "dataplane/attach/text.h"
#include "dataplane/service/adapters/pair_adapter.h"
#include "dataplane/transport/engine.h"

namespace paceline::service {

namespace {

using telemetry::NicSeries;

std::uint64_t nanos_of(Picos time) { return static_cast<std::uint64_t>(to_nanos(time).count); }

// The first place of queue pairs, as in EngineCore::qp_number; none lies below.
constexpr std::size_t kFirstPlace = 16;

}  // namespace

TelemetryPublisher::TelemetryPublisher(NicSet& nics, const std::vector<PairTable>& pairs,
                                       std::vector<telemetry::NicMeter>& meters,
                                       const Probes& probes, Picos interval)
    : nics_(nics),
      pairs_(pairs),
      meters_(meters),
      probes_(probes),
      interval_(interval),
      states_(nics.size()) {
  for (std::size_t i = 0; i < states_.size(); ++i) {
    states_[i].in_force.algorithm = nics.nic(i).congestion.primary.algorithm;
  }
}

void TelemetryPublisher::open(const telemetry::SegmentWriter& writer, std::size_t first_nic) {
  writer_ = &writer;
  first_nic_ = first_nic;
  active_ = true;  // the first turn publishes everything
}

void TelemetryPublisher::count_session(std::size_t nic, bool more) {
  states_[nic].sessions += more ? 1U : ~0U;
  states_[nic].changed = true;
}

void TelemetryPublisher::note(std::size_t nic, const NicInForce& in_force) {
  states_[nic].in_force = in_force;
  // Clusters may have changed; nobody watched them while there were none.
  for (State::Cluster& cluster : states_[nic].clusters) cluster.waited = false;
  states_[nic].changed = true;
  active_ = true;
  next_ = Picos{0};
}

void TelemetryPublisher::note_guard(std::size_t nic, std::uint32_t guard) {
  states_[nic].guard = guard;
  states_[nic].changed = true;
  active_ = true;
  next_ = Picos{0};
}

void TelemetryPublisher::publish(Picos now, const WorkerFigures& worker) {
  if (writer_ == nullptr) {
    active_ = false;
    return;
  }
  bool under_way = false;
  bool any = false;
  packets_ = 0;
  for (std::size_t nic = 0; nic < states_.size(); ++nic) {
    const telemetry::EngineCounters& c = nics_.nic(nic).engine->counters();
    packets_ += c.rx_packets + c.tx_data_packets + c.retransmitted_packets + c.tx_control_packets;
  }
  for (std::size_t nic = 0; nic < states_.size(); ++nic) {
    const std::uint64_t before = states_[nic].seen;
    under_way |= look(now, nic, worker);
    any |= states_[nic].seen != before;
  }
  // A round over all queue pairs follows the last event.
  if (any) {
    records_left_ = 0;
    for (const PairTable& pairs : pairs_) records_left_ += pairs.places();
  }
  write_records(now);
  last_ = now;
  next_ = now + interval_;
  active_ = under_way || any || records_left_ != 0;
}

bool TelemetryPublisher::look(Picos now, std::size_t nic, const WorkerFigures& worker) {
  State& state = states_[nic];
  const transport::Engine& engine = *nics_.nic(nic).engine;
  const telemetry::EngineCounters& c = engine.counters();
  telemetry::MessageMeter& meter = meters_[nic].all();
  const std::uint64_t progress = c.tx_data_packets + c.rx_data_packets + c.acks_received +
                                 c.retransmitted_packets + c.completions;
  const bool waiting = meter.outstanding() != 0;
  // A NIC has stalled if messages were outstanding all the time and nothing progressed.
  if (waiting && state.waited && progress == state.progress) {
    state.stalled_ns += nanos_of(now - last_);
    state.changed = true;
  }
  state.waited = waiting;
  state.progress = progress;
  const unsigned sizes = meter.take_changed();
  const std::uint64_t seen = progress + c.rx_packets + c.tx_control_packets + c.timeouts +
                             (std::uint64_t{pairs_[nic].size()} << 48U);
  // Publish once more after the last event: sums over contexts and queues lag behind.
  if (seen == state.seen && sizes == 0 && !state.changed) return waiting;
  state.changed = seen != state.seen || sizes != 0;
  state.seen = seen;

  add_contexts(now, nic);
  fill(now, nic, worker);
  telemetry::NicBody body;
  body.epoch = state.in_force.epoch;
  body.at_ns = nanos_of(now);
  body.generation = state.in_force.generation;
  body.arm = state.in_force.arm;
  body.guard = state.guard;
  attach::put_text(body.algorithm, cc::find(state.in_force.algorithm)->name);
  body.clusters = state.in_force.clusters;
  body.own_cluster = state.in_force.own_cluster;
  std::array<telemetry::SegmentWriter::Cluster, telemetry::kMostClusters> clusters;
  for (std::size_t c = 0; c < body.clusters; ++c) {
    telemetry::MessageMeter& of = meters_[nic].of(c);
    clusters[c].figures = {state.in_force.arm_of[c], state.whole.queue_pairs_to[c],
                           engine.view().sent_to(c), engine.view().retransmitted_to(c),
                           state.clusters[c].stalled_ns};
    clusters[c].messages = &of.figures();
    clusters[c].sizes = of.take_changed();
  }
  writer_->write(first_nic_ + nic, body, state.values, meter.figures(), sizes,
                 {clusters.data(), body.clusters});
  return waiting || state.changed;
}

// Does a piece of the round each time. Contexts that are destroyed meanwhile may be counted twice
// or not at all; times never go back for that reason.
void TelemetryPublisher::add_contexts(Picos now, std::size_t nic) {
  State& state = states_[nic];
  state.next_context = nics_.nic(nic).engine->view().add_contexts(now, state.next_context,
                                                                  kContextsAtATime, state.sums);
  if (state.next_context != 0) return;
  for (std::size_t i = 0; i < cc::kLimiters; ++i) {
    state.sums.limiter_picos[i] =
        std::max(state.sums.limiter_picos[i], state.whole.limiter_picos[i]);
  }
  state.whole = state.sums;
  state.sums = {};
  if (state.in_force.clusters != 0) watch_clusters(now, nic);
}

// As look() does for the whole NIC: a cluster has stalled if messages to it were outstanding in two
// rounds and nothing was sent or acknowledged in between. READ responses count for the NIC's own
// cluster.
void TelemetryPublisher::watch_clusters(Picos now, std::size_t nic) {
  State& state = states_[nic];
  for (std::size_t c = 0; c < state.in_force.clusters; ++c) {
    State::Cluster& cluster = state.clusters[c];
    std::uint64_t moved = state.whole.moved_to[c];
    if (c == state.in_force.own_cluster) {
      moved += nics_.nic(nic).engine->counters().rx_data_packets;
    }
    const bool waiting = meters_[nic].of(c).outstanding() != 0;
    if (waiting && cluster.waited && moved == cluster.moved) {
      cluster.stalled_ns += nanos_of(now - state.round_at);
    }
    cluster.waited = waiting;
    cluster.moved = moved;
  }
  state.round_at = now;
}

void TelemetryPublisher::fill(Picos now, std::size_t nic, const WorkerFigures& worker) {
  State& state = states_[nic];
  const transport::Engine& engine = *nics_.nic(nic).engine;
  telemetry::put_counters(engine.counters(), state.values);
  const auto put = [&](NicSeries series, std::uint64_t value) {
    state.values[telemetry::series_index(series)] = value;
  };
  const transport::ContextSums& sums = state.whole;
  for (std::size_t i = 0; i < cc::kLimiters; ++i) {
    state.values[telemetry::series_index(NicSeries::limited_application_ns) + i] =
        nanos_of(Picos{sums.limiter_picos[i]});
  }
  put(NicSeries::inflight_bytes, sums.inflight_bytes);
  put(NicSeries::backlog_bytes, sums.backlog_bytes);
  put(NicSeries::contexts, sums.contexts);
  put(NicSeries::contexts_on_fallback, sums.on_fallback);
  put(NicSeries::queue_pairs, pairs_[nic].size());
  put(NicSeries::sessions, state.sessions);
  if (const auto hop = nics_.last_hop(now, nic)) {
    put(NicSeries::last_hop_queue_bytes, hop->queue_bytes);
    put(NicSeries::last_hop_queue_max_bytes, hop->queue_max_bytes);
    put(NicSeries::last_hop_marked, hop->marked);
    put(NicSeries::last_hop_drops, hop->drops);
    put(NicSeries::paused_ns, nanos_of(hop->paused));
  }
  put(NicSeries::stalled_ns, state.stalled_ns);
  put(NicSeries::host_stops, engine.view().host_stops().count);
  put(NicSeries::host_stopped_ns, nanos_of(engine.view().host_stops().total));
  put(NicSeries::hiccups, worker.watch.hiccups);
  put(NicSeries::hiccup_ns, nanos_of(worker.watch.hiccup_time));
  put(NicSeries::stalls, worker.watch.stalls);
  put(NicSeries::worker_turns, worker.turns);
  put(NicSeries::worker_busy_turns, worker.busy_turns);
  put(NicSeries::worker_sleeps, worker.sleeps);
  put(NicSeries::worker_busy_cycles, worker.busy_cycles);
  put(NicSeries::worker_packets, packets_);
  if (const auto loans = nics_.loans(nic)) {
    put(NicSeries::port_loans_sent, loans->sent);
    put(NicSeries::port_loans_copied, loans->copied);
    put(NicSeries::port_loans_recalled, loans->recalled);
    put(NicSeries::port_loans_overdue, loans->overdue);
    put(NicSeries::port_loans_received, loans->received);
  }
  if (nic < probes_.size()) fill_probes(nic);
}

// The counts of probes continue from one probing client to the next; delays keep their last values.
void TelemetryPublisher::fill_probes(std::size_t nic) {
  const probing::Prober* const prober = probes_[nic]->prober();
  if (prober == nullptr) return;
  State& state = states_[nic];
  const probing::PathCounts& now = prober->totals();
  if (now.sent < state.probed.sent) state.probed_before += state.probed;
  state.probed = now;
  const auto put = [&](NicSeries series, std::uint64_t value) {
    state.values[telemetry::series_index(series)] = value;
  };
  put(NicSeries::probes_sent, state.probed_before.sent + now.sent);
  put(NicSeries::probes_answered, state.probed_before.answered + now.answered);
  put(NicSeries::probes_lost, state.probed_before.lost + now.lost);
  const auto delays = prober->one_way();
  if (!delays) return;
  const auto above_zero = [](double ns) { return static_cast<std::uint64_t>(std::max(ns, 0.0)); };
  put(NicSeries::one_way_there_ns, above_zero(delays->there));
  put(NicSeries::one_way_back_ns, above_zero(delays->back));
}

// Places without a queue pair are skipped quickly, eight at a time.
void TelemetryPublisher::write_records(Picos now) {
  std::size_t budget = 8 * kRecordsAtATime;
  while (budget != 0 && records_left_ != 0) {
    const PairTable& pairs = pairs_[record_nic_];
    if (record_place_ >= pairs.places()) {
      record_nic_ = (record_nic_ + 1) % pairs_.size();
      record_place_ = 0;
      --budget;
      continue;
    }
    --records_left_;
    --budget;
    const std::size_t place = record_place_++;
    if (place < kFirstPlace || place - kFirstPlace >= writer_->records()) continue;
    const std::size_t index = place - kFirstPlace;
    const PairAdapter* const pair = pairs.at(place);
    if (pair == nullptr) {
      if (writer_->number_in(first_nic_ + record_nic_, index) != 0) {
        writer_->write_record(first_nic_ + record_nic_, index, {});
      }
      continue;
    }
    telemetry::QueuePairRecord record;
    if (!nics_.nic(record_nic_).engine->view().describe_qp(now, pair->number(), record)) continue;
    record.user = pair->user();
    record.pid = pair->pid();
    if (record_nic_ < probes_.size()) {
      wire::IpAddress peer;
      static_assert(sizeof(peer.bytes) == sizeof(record.peer));
      std::memcpy(peer.bytes.data(), record.peer.data(), record.peer.size());
      const auto delays = probes_[record_nic_]->one_way_to(peer);
      record.one_way_there_ns = delays ? static_cast<std::int64_t>(delays->there) : 0;
      record.one_way_back_ns = delays ? static_cast<std::int64_t>(delays->back) : 0;
    }
    writer_->write_record(first_nic_ + record_nic_, index, record);
    budget -= std::min<std::size_t>(budget, 7);
  }
}

}  // namespace paceline::service
