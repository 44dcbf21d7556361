#include "dataplane/transport/engine_lookahead.h"

#include "dataplane/base/prefetch.h"
#include "dataplane/transport/congestion/scheduler.h"
#include "dataplane/transport/ends/requester.h"
#include "dataplane/wire/bytes/endian.h"

namespace paceline::transport {

namespace {

void prefetch_lines(const void* from, std::size_t lines) {
  const auto* bytes = static_cast<const std::byte*>(from);
  for (std::size_t line = 0; line < lines; ++line) prefetch_line(bytes + 64 * line);
}

constexpr std::size_t kContextLines = 4;
constexpr std::size_t kRequesterLines = 2;
constexpr std::size_t kQueuePairLines = 2;
constexpr std::size_t kPeerLines = 3;

// For worlds that look ahead: what every poll reads first, tables, port; what every packet needs of
// configuration and regions; the counters of either end.
void prefetch_core(const EngineCore& core) {
  prefetch_lines(&core, 3);
  prefetch_lines(&core.config, 2);
  prefetch_line(&core.regions);
  prefetch_lines(&core.unaccounted_bytes, 2);
}

}  // namespace

void EngineLookahead::load_state() const {
  prefetch_core(core_);
  prefetch_line(&core_.peers);
  scheduler_.prefetch();
  prefetch_line(&requester_);
}

void EngineLookahead::load_deadlines() const {
  core_.qp_timers.prefetch();
  scheduler_.prefetch_deadlines();
}

// The queue pair that the packet is for, if its number exists. Without a packet, on a host with few
// queue pairs: the one that is likely to send.
const QueuePair* EngineLookahead::queue_pair_of(const Packet* packet) const {
  if (packet != nullptr) {
    if (packet->bth_offset == 0) return nullptr;
    const std::uint32_t number =
        wire::load_be32(packet->header.data() + packet->bth_offset + 4) & 0xFF'FFFFU;
    const std::uint32_t slot = core_.qp_slot(number);
    return slot < core_.qps.size() ? core_.qps[slot] : nullptr;
  }
  const std::uint32_t next = scheduler_.likely_next();
  if (next >= core_.contexts.size()) return nullptr;
  const std::uint32_t active = core_.contexts[next].active_head;
  return active < core_.qps.size() ? core_.qps[active] : nullptr;
}

void EngineLookahead::load_flow(const Packet* packet) const {
  if (packet == nullptr) {
    const std::uint32_t next = scheduler_.likely_next();
    if (next < core_.contexts.size()) prefetch_lines(&core_.contexts[next], kContextLines);
    return;
  }
  const QueuePair* qp = queue_pair_of(packet);
  if (qp == nullptr) return;
  prefetch_lines(qp, kQueuePairLines);
  if (packet->payload_bytes != 0) {
    prefetch_line(&qp->responder);
  } else {
    prefetch_lines(&qp->requester, kRequesterLines);
  }
}

void EngineLookahead::load_flow_parts(const Packet* packet) const {
  const QueuePair* qp = queue_pair_of(packet);
  if (qp == nullptr) return;
  if (packet == nullptr) {
    prefetch_lines(qp, kQueuePairLines);
    prefetch_line(&qp->header);
    prefetch_lines(&qp->requester, kRequesterLines);
  } else if (packet->payload_bytes != 0) {
    // Prefetches the template of the answer with it.
    if (qp->peer != kNoIndex) prefetch_lines(&core_.peers[qp->peer], kPeerLines);
  } else {
    if (qp->context != kNoIndex) prefetch_lines(&core_.contexts[qp->context], kContextLines);
  }
}

// Prefetches the request to be sent next, or the oldest one in flight.
void EngineLookahead::load_request(const Packet* packet) const {
  if (packet != nullptr && packet->payload_bytes != 0) return;
  const QueuePair* qp = queue_pair_of(packet);
  if (qp == nullptr) return;
  const RequesterState& r = qp->requester;
  prefetch_line(packet == nullptr ? &r.queue.at(r.position.request()) : &r.queue.front());
}

}  // namespace paceline::transport
