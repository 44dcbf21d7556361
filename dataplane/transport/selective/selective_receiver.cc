#include "dataplane/transport/selective/selective_receiver.h"

#include <algorithm>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/message_placer.h"

namespace paceline::transport {

// A packet that is not the expected one.
RequestOutcome SelectiveReceiver::accept_early(EngineCore& core, QueuePair& qp,
                                               const wire::ParsedPacket& parsed,
                                               const Packet& packet) {
  SelectiveReceive& s = qp.selective->receive;
  const std::int32_t ahead = distance(parsed.psn, qp.responder.position.expected());
  ++core.counters.out_of_sequence;
  if (ahead >= s.early.window()) {
    ++core.counters.beyond_window;
    ++core.counters.dropped_gap;
    return RequestOutcome::done;
  }
  s.xack.want();
  if (s.early.has(parsed.psn)) {
    ++core.counters.duplicates;
    ++core.counters.dropped_stale;
    s.xack.on_duplicate();
    return RequestOutcome::done;
  }
  const bool placed = !core.config.place_in_order && place_early(core, qp, parsed, packet);
  // Held packets must leave enough for the expected one, and for answers.
  if (!placed && (s.early.held() == core.config.reorder_packets || core.pool.scarce())) {
    ++core.counters.beyond_window;
    ++core.counters.dropped_gap;
    return RequestOutcome::done;
  }
  if (placed) {
    s.early.place(parsed.psn, parsed.solicited);
    ++core.counters.placed_early;
    ++core.counters.rx_data_packets;
    core.counters.rx_data_bytes += parsed.payload_bytes;
    qp.counters.rx_bytes += parsed.payload_bytes;
    return RequestOutcome::done;
  }
  ++core.counters.held_early;
  return RequestOutcome::held;
}

// Whether the packet was a WRITE that could be placed as it is. Any other packet is judged when its
// turn comes.
bool SelectiveReceiver::place_early(EngineCore& core, QueuePair& qp,
                                    const wire::ParsedPacket& parsed, const Packet& packet) {
  // An XRC packet uses the rights of the receive queue that it names, which are known at its turn.
  if (parsed.opcode != wire::Opcode::rc_write_only) return false;
  const wire::Reth& reth = parsed.ext.reth;
  if (reth.length != parsed.payload_bytes || reth.length > qp.mtu) return false;
  if (parsed.solicited && reth.length != qp.mtu) return false;
  if (reth.length == 0) return true;
  const Region* region = MessagePlacer::writable(core, qp, reth);
  if (region == nullptr) return false;
  bool mismatch = false;
  const MemoryResult result = store_payload(*region, {qp.number, true}, reth.address, reth.length,
                                            reth.address, packet, mismatch);
  if (mismatch) ++core.counters.digest_mismatches;
  return result == MemoryResult::done;
}

// The expected sequence number has moved on from `was`: packets in between are no longer ahead.
void SelectiveReceiver::release_below(EngineCore& core, QueuePair& qp, Psn was) {
  SelectiveReceive& s = qp.selective->receive;
  const Psn end = qp.responder.position.expected();
  s.early.reach(end);
  const auto count = std::min(distance(end, was), s.early.window());
  for (std::int32_t i = 0; i < count; ++i) {
    if (Packet* held = s.early.release(was + static_cast<std::uint32_t>(i)); held != nullptr) {
      ++core.counters.dropped_stale;
      core.pool.free(held);
    }
  }
}

}  // namespace paceline::transport
