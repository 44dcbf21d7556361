#include "dataplane/transport/message/message_placer.h"

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/scatter_gather.h"

namespace paceline::transport {

namespace {

// A packet of a WRITE that more packets of that WRITE follow; each says where it goes
// (docs/wire-protocol.md).
bool goes_on(const wire::ParsedPacket& parsed) {
  return parsed.solicited && parsed.properties.operation == wire::Operation::write &&
         parsed.properties.position == wire::Position::only && !parsed.properties.has_immediate();
}

}  // namespace

const Region* MessagePlacer::writable(EngineCore& core, const QueuePair& qp,
                                      const wire::Reth& reth) {
  const Region* region = core.regions.find(reth.rkey);
  const bool granted =
      region != nullptr && (qp.config.access & access::remote_write) != 0 &&
      region->grants_peer(qp.number, qp.config.pd, access::remote_write, reth.address, reth.length);
  return granted ? region : nullptr;
}

// If the result is not `done`, nothing has changed.
MessagePlacer::Begin MessagePlacer::begin(EngineCore& core, QueuePair& qp,
                                          const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  if (parsed.properties.operation == wire::Operation::write) {
    const wire::Reth& reth = parsed.ext.reth;
    if (reth.length != 0 && writable(core, qp, reth) == nullptr) return Begin::no_access;
    r.message.begin_write(reth.rkey, reth.address, reth.length);
  } else {
    if (!take_receive(qp)) return Begin::not_ready;
    r.message.begin_send(r.receive.local_key, r.receive.address);
  }
  return Begin::done;
}

// Takes the receive request for the message in progress. A request that a dropped message had taken
// serves the next message.
bool MessagePlacer::take_receive(QueuePair& qp) {
  ResponderState& r = qp.responder;
  if (r.receive_taken) return true;
  ReceiveQueue* const receives = qp.config.receive_queue;
  r.receive_taken = receives != nullptr && receives->take(r.receive, r.receive_segments.data());
  return r.receive_taken;
}

SegmentAccess MessagePlacer::received_into(EngineCore& core, const QueuePair& qp,
                                           std::uint64_t offset, std::uint32_t bytes) {
  const ReceiveRequest& receive = qp.responder.receive;
  return {core.regions, {receive.segments, receive.segment_count},
          qp.config.pd, qp.number,
          true,         access::local_write,
          offset,       bytes};
}

MemoryResult MessagePlacer::place(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                                  const Packet& packet) {
  ResponderState& r = qp.responder;
  const std::uint32_t bytes = parsed.payload_bytes;
  if (bytes == 0) return MemoryResult::done;
  MemoryResult result = MemoryResult::fault;
  bool mismatch = false;
  if (!r.message.is_write() && r.receive.segment_count != 0) {
    result = scatter_payload(received_into(core, qp, r.message.received(), bytes),
                             r.message.received(), packet, mismatch);
  } else {
    const Region* region = core.regions.find(r.message.key());
    const std::uint8_t needed = r.message.is_write() ? access::remote_write : access::local_write;
    if (region == nullptr ||
        !region->grants_peer(qp.number, qp.config.pd, needed, r.message.address(), bytes)) {
      return MemoryResult::fault;
    }
    result = store_payload(*region, {qp.number, true}, r.message.address(), bytes,
                           r.message.is_write() ? r.message.address() : r.message.received(),
                           packet, mismatch);
  }
  if (mismatch) ++core.counters.digest_mismatches;
  if (result == MemoryResult::pending && parsed.properties.begins_message()) r.message.close();
  return result;
}

void MessagePlacer::finish(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed) {
  ResponderState& r = qp.responder;
  r.message.close();
  qp.counters.rx_bytes += r.message.received();
  std::uint64_t earlier_bytes = 0;
  if (qp.responder.selective) [[unlikely]] {
    SelectiveReceive& s = qp.selective->receive;
    if (goes_on(parsed)) {
      s.continued_bytes += r.message.received();  // the message continues in the next packet
      return;
    }
    earlier_bytes = s.continued_bytes;
    s.continued_bytes = 0;
  }
  r.position.complete_message();
  if (!r.receive_taken) return;  // a WRITE without immediate leaves no trace here
  r.receive_taken = false;
  ++qp.counters.completions;
  Completion completion;
  completion.wr_id = r.receive.wr_id;
  completion.bytes = r.message.received() + earlier_bytes;
  completion.at = core.now;
  completion.qp_number = qp.number;
  completion.opcode =
      r.message.is_write() ? CompletionOpcode::receive_write_imm : CompletionOpcode::receive;
  completion.has_immediate = parsed.properties.has_immediate();
  completion.solicited = parsed.solicited;
  completion.immediate = parsed.ext.immediate;
  completion.invalidated = parsed.properties.has_ieth();
  completion.invalidated_key = completion.invalidated ? parsed.ext.invalidate_rkey : 0;
  completion.srq_number = r.srq_number;
  core.complete(qp.config.receive_cq, completion);
}

}  // namespace paceline::transport
