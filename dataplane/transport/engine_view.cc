#include "dataplane/transport/engine_view.h"

#include <algorithm>
#include <cstring>
#include <string_view>
#include <vector>

#include "cc/registry.h"
#include "dataplane/telemetry/cluster_figures.h"
#include "dataplane/transport/congestion/congestion_setups.h"
#include "dataplane/transport/congestion/grant_exchange.h"
#include "dataplane/transport/congestion/migration.h"
#include "dataplane/transport/congestion/plugin_watch.h"
#include "dataplane/transport/datagram/datagram.h"
#include "dataplane/transport/message/scoreboard.h"
#include "dataplane/transport/qp/queue_pair_figures.h"
#include "dataplane/transport/read/read_requester.h"

namespace paceline::transport {

namespace {

std::array<std::uint8_t, 16> gid_of(const wire::IpAddress& ip) {
  std::array<std::uint8_t, 16> gid{};
  static_assert(sizeof ip.bytes == sizeof gid);
  std::memcpy(gid.data(), ip.bytes.data(), gid.size());
  return gid;
}

std::uint64_t responses_in(const PacketFifo& fifo) {
  std::uint64_t count = 0;
  for (const Packet* p = fifo.head; p != nullptr; p = p->next)
    count += ReadRequester::is_response(*p) ? 1 : 0;
  return count;
}

std::uint64_t packets_in(const PacketFifo& fifo) {
  std::uint64_t count = 0;
  for (const Packet* p = fifo.head; p != nullptr; p = p->next) ++count;
  return count;
}

// Arrived packets that wait for memory, or for an earlier packet.
std::uint64_t held_by(const QueuePair& qp) {
  const std::uint64_t early = qp.selective == nullptr ? 0 : qp.selective->receive.early.held();
  return packets_in(qp.responder.parked) + responses_in(qp.requester.parked) + early;
}

}  // namespace

const CcSetup& EngineView::setup() const { return setups_.own(); }

std::uint64_t EngineView::generation() const { return setups_.generation(); }

bool EngineView::reconfiguring() const { return migration_.under_way(); }

cc::plugin::Offence EngineView::quarantined(cc::AlgorithmId id) const {
  return plugins_.quarantined(id);
}

const std::string& EngineView::violation() const { return grants_.violation(); }

QpState EngineView::state_of(std::uint32_t qp_number) const {
  const QueuePair* qp = core_.find_qp(qp_number);
  return qp == nullptr ? QpState::reset : qp->state;
}

std::uint32_t EngineView::queued_sends(std::uint32_t qp_number) const {
  const QueuePair* qp = core_.find_qp(qp_number);
  return qp == nullptr ? 0 : qp->requester.queue.size();
}

std::uint64_t EngineView::inflight_bytes() const {
  std::uint64_t sum = 0;
  for (const QueuePair* qp : core_.qps) {
    if (qp != nullptr) sum += qp->requester.inflight_bytes;
  }
  return sum;
}

std::array<std::int64_t, cc::kLimiters> EngineView::limiter_picos(Picos now) const {
  std::array<std::int64_t, cc::kLimiters> sum = core_.retired_limiter_picos;
  for (std::uint32_t c = 0; c < core_.contexts.size(); ++c) {
    const CongestionContext& context = core_.contexts[c];
    if (!context.in_use) continue;
    const auto picos = context.limiter_picos_until(now);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += picos[i];
  }
  return sum;
}

std::array<std::int64_t, cc::kLimiters> EngineView::limiter_picos(Picos now,
                                                                  std::uint32_t qp_number) const {
  const QueuePair* qp = core_.find_qp(qp_number);
  if (qp == nullptr || qp->context == kNoIndex) return {};
  return core_.contexts[qp->context].limiter_picos_until(now);
}

std::string EngineView::check_conservation() const {
  std::vector<std::uint64_t> inflight(core_.contexts.size());
  std::vector<std::uint64_t> backlog(core_.contexts.size());
  std::vector<std::uint32_t> attached(core_.contexts.size());
  for (std::uint32_t i = 0; i < core_.handles.size(); ++i) {
    if (core_.handles[i].in_use) ++attached[core_.handles[i].context];
  }
  for (const QueuePair* qp : core_.qps) {
    if (qp == nullptr) continue;
    if (qp->config.type == QpType::ud) {
      const SendQueue& queue = qp->requester.queue;
      for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
        const QueuedRequest& request = queue.at(p).request;
        backlog[Datagram::context_of(core_, *qp, request)] += request.length;
      }
      continue;
    }
    if (qp->context == kNoIndex) continue;
    inflight[qp->context] += qp->requester.inflight_bytes;
    backlog[qp->context] += qp->requester.backlog_bytes + qp->responder.backlog_bytes;
    ++attached[qp->context];
    if (!Scoreboard::repair_adds_up(*qp)) {
      return "queue pair " + std::to_string(qp->number) + ": its repair flag is wrong";
    }
  }
  for (std::uint32_t i = 0; i < core_.contexts.size(); ++i) {
    const CongestionContext& context = core_.contexts[i];
    if (!context.in_use) continue;
    const std::string name = "context " + std::to_string(i);
    if (attached[i] == 0) return name + ": no queue pair or handle uses it";
    if (!migration_.under_way() &&
        context.algorithm != setups_.algorithm_for(core_.peers[context.peer])) {
      return name + ": runs an algorithm that is not its peer's";
    }
    if (context.inflight_bytes != inflight[i]) {
      return name + ": " + std::to_string(context.inflight_bytes) +
             " bytes in flight, its queue pairs say " + std::to_string(inflight[i]);
    }
    if (context.backlog_bytes != backlog[i]) {
      return name + ": backlog of " + std::to_string(context.backlog_bytes) +
             " bytes, its queue pairs say " + std::to_string(backlog[i]);
    }
    if (context.queue_pairs != attached[i]) return name + ": its count of queue pairs is wrong";
    if (context.sent_total > context.decision.ceiling && context.decision.ceiling != 0 &&
        context.place == ContextPlace::ready) {
      return name + ": sent " + std::to_string(context.sent_total) + " bytes beyond its ceiling " +
             std::to_string(context.decision.ceiling);
    }
  }
  if (std::string lost = check_arrivals(); !lost.empty()) return lost;
  if (core_.counters.digest_mismatches != 0) {
    return std::to_string(core_.counters.digest_mismatches) + " payloads arrived in a wrong place";
  }
  return {};
}

std::uint8_t EngineView::cluster_of(std::uint32_t qp_number, std::uint32_t address_handle) const {
  const QueuePair* const qp = core_.find_qp(qp_number);
  if (qp == nullptr) return telemetry::kNoCluster;
  std::uint32_t peer = qp->peer;
  if (qp->config.type == QpType::ud) {
    const AddressHandle* const handle = core_.handles.find(address_handle);
    peer = handle == nullptr ? kNoIndex : handle->peer;
  }
  return peer == kNoIndex ? telemetry::kNoCluster : core_.peers[peer].cluster;
}

std::uint64_t EngineView::sent_to(std::size_t cluster) const {
  return core_.packets_to == nullptr ? 0 : (*core_.packets_to)[cluster].sent;
}

std::uint64_t EngineView::retransmitted_to(std::size_t cluster) const {
  return core_.packets_to == nullptr ? 0 : (*core_.packets_to)[cluster].again;
}

std::uint32_t EngineView::next_qp(std::uint32_t number) const {
  std::uint32_t slot = number == 0 ? 0 : core_.qp_slot(number) + 1;
  for (; slot < core_.qps.size(); ++slot) {
    if (core_.qps[slot] != nullptr) return core_.qps[slot]->number;
  }
  return 0;
}

bool EngineView::describe_qp(Picos now, std::uint32_t number,
                             telemetry::QueuePairRecord& record) const {
  const QueuePair* const qp = core_.find_qp(number);
  if (qp == nullptr) return false;
  record.number = number;
  record.at_ns = static_cast<std::uint64_t>(to_nanos(now).count);
  record.peer = {};
  if (qp->peer != kNoIndex) record.peer = gid_of(core_.peers[qp->peer].ip);
  record.peer_number = qp->remote_number;
  record.type = static_cast<std::uint8_t>(qp->config.type);
  record.state = static_cast<std::uint8_t>(qp->state);
  record.inflight_bytes = qp->requester.inflight_bytes;
  record.backlog_bytes = qp->requester.backlog_bytes + qp->responder.backlog_bytes;
  const RoundTripEstimate& round_trip = round_trip_of(*qp);
  record.srtt_ns = round_trip.smoothed_ns();
  record.min_rtt_ns = round_trip.least_ns();
  const telemetry::QueuePairCounters& counters = qp->counters;
  record.tx_bytes = counters.tx_bytes + sent_of_queued(*qp);
  record.rx_bytes =
      counters.rx_bytes + (qp->responder.message.open() ? qp->responder.message.received() : 0);
  record.retransmitted_packets = counters.retransmitted_packets;
  record.timeouts = counters.timeouts;
  record.naks_received = counters.naks_received;
  record.rnr_received = counters.rnr_received;
  record.cnps_received = counters.cnps_received;
  record.cnps_sent = counters.cnps_sent;
  record.completions = counters.completions;
  record.source_port = qp->path.source_port;

  record.limiter = 0;
  record.on_fallback = 0;
  record.algorithm = {};
  record.rate_bps = 0;
  record.window_bytes = cc::kUnlimited;
  record.limiter_ns = {};
  if (qp->context == kNoIndex) return true;
  const CongestionContext& context = core_.contexts[qp->context];
  record.limiter = static_cast<std::uint8_t>(context.limiter);
  record.on_fallback = context.on_fallback ? 1 : 0;
  const cc::AlgorithmId algorithm = context.on_fallback ? context.fallback : context.algorithm;
  const std::string_view name = cc::find(algorithm)->name;
  std::memcpy(record.algorithm.data(), name.data(),
              std::min(name.size(), record.algorithm.size() - 1));
  record.rate_bps = context.decision.rate.bps;
  record.window_bytes = context.decision.window_bytes;
  static_assert(std::tuple_size_v<decltype(record.limiter_ns)> == cc::kLimiters);
  const auto picos = context.limiter_picos_until(now);
  for (std::size_t i = 0; i < picos.size(); ++i) {
    record.limiter_ns[i] = static_cast<std::uint64_t>(picos[i] / 1000);
  }
  return true;
}

EngineView::Population EngineView::population() const {
  Population population;
  for (const QueuePair* qp : core_.qps) population.queue_pairs += qp != nullptr ? 1 : 0;
  for (std::uint32_t i = 0; i < core_.contexts.size(); ++i) {
    const CongestionContext& context = core_.contexts[i];
    if (!context.in_use) continue;
    ++population.contexts;
    if (context.on_fallback) ++population.on_fallback;
    if (setups_.proactive() && !context.proactive &&
        core_.peers[context.peer].status != PeerStatus::paceline) {
      ++population.foreign;
    }
  }
  for (std::uint32_t i = 0; i < core_.peers.size(); ++i) {
    population.peers += core_.peers[i].queue_pairs != 0 ? 1 : 0;
  }
  return population;
}

std::uint32_t EngineView::add_contexts(Picos now, std::uint32_t first, std::uint32_t count,
                                       ContextSums& sums) const {
  if (first == 0) {
    for (std::size_t i = 0; i < sums.limiter_picos.size(); ++i) {
      sums.limiter_picos[i] += core_.retired_limiter_picos[i];
    }
  }
  const std::uint32_t size = core_.contexts.size();
  const std::uint32_t end = count < size - std::min(first, size) ? first + count : size;
  for (std::uint32_t c = first; c < end; ++c) {
    const CongestionContext& context = core_.contexts[c];
    if (!context.in_use) continue;
    ++sums.contexts;
    sums.on_fallback += context.on_fallback ? 1U : 0U;
    sums.inflight_bytes += context.inflight_bytes;
    sums.backlog_bytes += context.backlog_bytes;
    const std::uint8_t cluster = core_.peers[context.peer].cluster;
    if (cluster < sums.moved_to.size()) {
      sums.queue_pairs_to[cluster] += context.queue_pairs;
      sums.moved_to[cluster] += 2 * context.sent_total - context.inflight_bytes;
    }
    const auto picos = context.limiter_picos_until(now);
    for (std::size_t i = 0; i < picos.size(); ++i) sums.limiter_picos[i] += picos[i];
  }
  return end < size ? end : 0;
}

std::uint64_t EngineView::held_packets() const {
  std::uint64_t held = 0;
  for (const QueuePair* qp : core_.qps) {
    if (qp != nullptr && qp->state != QpState::error) held += held_by(*qp);
  }
  return held;
}

std::string EngineView::check_arrivals() const {
  std::uint64_t held = 0;
  for (const QueuePair* qp : core_.qps) held += qp == nullptr ? 0 : held_by(*qp);
  const telemetry::EngineCounters& c = core_.counters;
  const std::uint64_t known = packets_accounted(c, core_.config.speak_control) + held;
  if (c.rx_packets == known) return {};
  return std::to_string(c.rx_packets) + " packets arrived, " + std::to_string(known) +
         " are delivered, held or in a counter of those that are not";
}

}  // namespace paceline::transport
