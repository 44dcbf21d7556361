#include "dataplane/transport/message/send_window.h"

#include <algorithm>

#include "dataplane/transport/message/request_order.h"

namespace paceline::transport {

namespace {

// The last packet carries 4 bytes more: immediate data, or the key to revoke.
constexpr bool has_last_word(WorkOpcode opcode) {
  return has_immediate(opcode) || opcode == WorkOpcode::send_invalidate;
}

}  // namespace

std::uint32_t SendWindow::request_wire_of(const EngineCore& core, const QueuePair& qp,
                                          const SendEntry& entry) {
  const std::size_t extension =
      is_atomic(entry.request.opcode) ? wire::AtomicEth::kBytes : wire::Reth::kBytes;
  const auto frame = static_cast<std::uint32_t>(qp.header.header_bytes + extension + 8U);
  return core.info.wire.wire_bytes(frame, 0);
}

// The oldest READ or atomic that begins before `end` and is incomplete.
SendEntry* SendWindow::unanswered_before(QueuePair& qp, Psn end) {
  SendQueue& queue = qp.requester.queue;
  for (std::uint32_t p = queue.head(); p != queue.tail(); ++p) {
    SendEntry& entry = queue.at(p);
    if (!before(entry.first_psn, end)) break;
    if (entry.has_response) return &entry;  // incomplete, or it would have left the queue
  }
  return nullptr;
}

// Everything before `next` has arrived; `next` lies in (una_psn, max_psn].
std::uint64_t SendWindow::advance(EngineCore& core, QueuePair& qp, Psn next) {
  RequesterState& r = qp.requester;
  if (before(r.position.next(), next)) {
    // We had gone back, but the packets had arrived: they need not be sent again.
    const Span skipped = span_between(core, qp, r.position.request(), r.position.next(), next);
    core.take_backlog(qp, skipped.payload);
    const Span flown =
        span_between(core, qp, r.queue.head(), r.position.oldest(), r.position.next());
    core.take_inflight(qp, flown.wire);
    std::uint32_t position = r.position.request();
    std::uint32_t packet = 0;
    for (; position != r.queue.tail(); ++position) {
      const SendEntry& entry = r.queue.at(position);
      packet = static_cast<std::uint32_t>(distance(next, entry.first_psn));
      if (packet < entry.packets) break;
      packet = 0;
      if (entry.has_response) ++r.outstanding_reads;  // until it is popped
    }
    r.position.move(next, position, packet);
    r.position.acknowledge(next);
    return flown.wire;
  }
  const Span acked = span_between(core, qp, r.queue.head(), r.position.oldest(), next);
  core.take_inflight(qp, acked.wire);
  r.position.acknowledge(next);
  return acked.wire;
}

std::uint64_t SendWindow::rewind(EngineCore& core, QueuePair& qp) {
  RequesterState& r = qp.requester;
  const Span lost = span_between(core, qp, r.queue.head(), r.position.oldest(), r.position.next());
  core.add_backlog(qp, lost.payload);
  core.take_inflight(qp, lost.wire);
  const std::uint32_t oldest = r.queue.head();
  const std::int32_t packet =
      r.queue.empty() ? 0 : distance(r.position.oldest(), r.queue.at(oldest).first_psn);
  r.position.move(r.position.oldest(), oldest, static_cast<std::uint32_t>(packet));
  r.ack_requests.ask_next(core.config.ack_every);
  r.probe.stop();
  r.outstanding_reads = 0;
  if (r.ordering_constraints != 0) RequestOrder::check(qp);
  return lost.wire;
}

void SendWindow::complete_before(EngineCore& core, QueuePair& qp, Psn next) {
  RequesterState& r = qp.requester;
  const bool ordered = r.ordering_constraints != 0;
  while (!r.queue.empty()) {
    const SendEntry& entry = r.queue.front();
    if (distance(next, entry.first_psn) < static_cast<std::int32_t>(entry.packets)) break;
    if (ordered) {
      if (entry.has_response || entry.request.fence) --r.ordering_constraints;
      if (entry.has_response && !r.selective) --r.outstanding_reads;
    }
    if (!entry.has_response) qp.counters.tx_bytes += entry.request.length;
    if (entry.request.signaled) core.complete_send(qp, entry.request, CompletionStatus::success);
    r.queue.pop();
  }
}

std::uint32_t SendWindow::payload_of(const QueuePair& qp, const SendEntry& entry,
                                     std::uint32_t packet) {
  const std::uint64_t mtu = qp.mtu;
  const std::uint64_t offset = packet * mtu;
  return static_cast<std::uint32_t>(std::min(mtu, entry.request.length - offset));
}

std::uint32_t SendWindow::wire_of(const EngineCore& core, const QueuePair& qp,
                                  const SendEntry& entry, std::uint32_t packet) {
  if (entry.has_response) return request_wire_of(core, qp, entry);
  const std::uint32_t payload = payload_of(qp, entry, packet);
  const bool last = packet + 1 == entry.packets;
  std::uint32_t frame = qp.header.header_bytes + ((payload + 3U) & ~3U) + 8U;
  if ((packet == 0 && is_write(entry.request.opcode)) || entry.split()) frame += wire::Reth::kBytes;
  if (last && has_last_word(entry.request.opcode)) frame += wire::kImmediateBytes;
  return core.info.wire.wire_bytes(frame, payload);
}

SendWindow::Span SendWindow::span_of(EngineCore& core, const QueuePair& qp, const SendEntry& entry,
                                     std::uint32_t from, std::uint32_t to) {
  if (from >= to) return {};
  Span span;
  if (entry.has_response) {
    // One packet stands for all sequence numbers: it is in flight until the last one is answered.
    if (to == entry.packets) span.wire = request_wire_of(core, qp, entry);
    return span;
  }
  const std::uint64_t mtu = qp.mtu;
  span.payload =
      std::min(to * mtu, entry.request.length) - std::min(from * mtu, entry.request.length);
  span.wire = wire_of(core, qp, entry, from);
  if (to - from > 1) span.wire += wire_of(core, qp, entry, to - 1);
  if (to - from > 2) span.wire += std::uint64_t{to - from - 2} * wire_of(core, qp, entry, from + 1);
  return span;
}

// Bytes of the packets [from, to), which begin in the request at `position`.
SendWindow::Span SendWindow::span_between(EngineCore& core, const QueuePair& qp,
                                          std::uint32_t position, Psn from, Psn to) {
  Span total;
  while (from != to && position != qp.requester.queue.tail()) {
    const SendEntry& entry = qp.requester.queue.at(position);
    const auto begin = static_cast<std::uint32_t>(distance(from, entry.first_psn));
    const auto wanted = static_cast<std::uint32_t>(distance(to, entry.first_psn));
    const std::uint32_t end = std::min(wanted, entry.packets);
    const Span span = span_of(core, qp, entry, begin, end);
    total.payload += span.payload;
    total.wire += span.wire;
    from = entry.first_psn + end;
    ++position;
  }
  return total;
}

}  // namespace paceline::transport
