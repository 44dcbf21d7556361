#include "dataplane/transport/datagram/datagram.h"

#include <array>
#include <cstring>

#include "dataplane/transport/datagram/unreliable_connection.h"
#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/message/message_placer.h"
#include "dataplane/transport/message/packet_builder.h"
#include "dataplane/transport/message/qp_failure.h"
#include "dataplane/transport/message/scatter_gather.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

bool Datagram::build(EngineCore& core, QueuePair& qp, Packet& packet) {
  const RequesterState& r = qp.requester;
  const SendEntry& entry = r.queue.at(r.position.request());
  const QueuedRequest& request = entry.request;
  const auto payload = static_cast<std::uint32_t>(request.length);
  if (!PacketBuilder::fill_payload(core, qp, packet, r.position.request(), 0, payload))
    return false;
  AddressHandle& handle = core.handles[request.address_handle >> 8];
  wire::TransportFields fields;
  fields.dest_qpn = request.target_qp_number;
  fields.psn = r.position.next();
  fields.payload_bytes = payload;
  fields.solicited = request.solicited;
  // A key with the highest bit set selects the queue pair's own key (vol. 1, 10.2.5).
  constexpr std::uint32_t kPrivileged = 0x8000'0000;
  const std::uint32_t qkey =
      (request.target_qkey & kPrivileged) != 0 ? qp.config.qkey : request.target_qkey;
  packet.header_bytes = static_cast<std::uint16_t>(wire::build_datagram(
      handle.header, wire::HeaderBuffer{packet.header}, fields, {qkey, core.number_to_peers(qp)},
      has_immediate(request.opcode) ? &request.immediate : nullptr));
  core.finish_packet(handle.header, handle.path.traffic_class, handle.context, packet, payload);
  core.contexts[handle.context].backlog_bytes -= payload;
  --handle.uses;
  UnreliableConnection::sent_unacknowledged(core, qp, handle.peer, payload, true);
  // The next datagram may belong to another context.
  if (r.position.request() != r.queue.tail() &&
      context_of(core, qp, r.queue.at(r.position.request()).request) != qp.context) {
    qp.requester.stops |= requester_stop::target;
  }
  return true;
}

RequestOutcome Datagram::accept(EngineCore& core, QueuePair& qp, const wire::ParsedPacket& parsed,
                                const Packet& packet) {
  ResponderState& r = qp.responder;
  if (parsed.ext.deth.qkey != qp.config.qkey) {  // 9.6.1.5: dropped, and counted
    ++core.counters.qkey_violations;
    return RequestOutcome::done;
  }
  const std::uint64_t bytes = std::uint64_t{kGrhBytes} + parsed.payload_bytes;
  const bool taken = MessagePlacer::take_receive(qp);
  if (!taken || bytes > r.receive.length) {
    // There is no buffer, or it is too small: it waits for the next datagram.
    ++core.counters.unreliable_drops;
    ++(taken ? core.counters.dropped_too_long : core.counters.dropped_no_receive);
    return RequestOutcome::done;
  }
  std::array<std::byte, kGrhBytes> grh{};
  const std::size_t ip_bytes = parsed.ipv6 ? wire::kIpv6Bytes : wire::kIpv4Bytes;
  std::memcpy(grh.data() + kGrhBytes - ip_bytes, packet.header.data() + parsed.l3_offset, ip_bytes);
  const Region* region = core.regions.find(r.receive.local_key);
  MemoryResult result = MemoryResult::fault;
  bool mismatch = false;
  if (r.receive.segment_count != 0) {
    result = scatter_bytes(MessagePlacer::received_into(core, qp, 0, kGrhBytes), grh);
    if (result == MemoryResult::done && parsed.payload_bytes != 0) {
      result =
          scatter_payload(MessagePlacer::received_into(core, qp, kGrhBytes, parsed.payload_bytes),
                          0, packet, mismatch);
    }
  } else if (region != nullptr &&
             region->grants(qp.config.pd, access::local_write, r.receive.address, bytes)) {
    result = store_bytes(*region, {qp.number, true}, r.receive.address, grh);
    if (result == MemoryResult::done && parsed.payload_bytes != 0) {
      result = store_payload(*region, {qp.number, true, kGrhBytes}, r.receive.address + kGrhBytes,
                             parsed.payload_bytes, 0, packet, mismatch);
    }
  }
  if (mismatch) ++core.counters.digest_mismatches;
  if (result == MemoryResult::pending) return RequestOutcome::pending;
  if (result == MemoryResult::fault) {
    ++core.counters.dropped_local_error;
    QpFailure::fail_receive(core, qp, CompletionStatus::local_protection_error);
    QpFailure::fail(core, qp, CompletionStatus::flushed);
    return RequestOutcome::done;
  }
  ++core.counters.rx_data_packets;
  core.counters.rx_data_bytes += parsed.payload_bytes;
  qp.counters.rx_bytes += parsed.payload_bytes;
  ++qp.counters.completions;
  r.receive_taken = false;
  Completion completion;
  completion.wr_id = r.receive.wr_id;
  completion.bytes = bytes;
  completion.at = core.now;
  completion.qp_number = qp.number;
  completion.opcode = CompletionOpcode::receive;
  completion.has_immediate = parsed.properties.has_immediate();
  completion.solicited = parsed.solicited;
  completion.immediate = parsed.ext.immediate;
  completion.source_qp_number = parsed.ext.deth.source_qpn;
  completion.has_grh = true;
  completion.ipv6 = parsed.ipv6;
  core.complete(qp.config.receive_cq, completion);
  return RequestOutcome::done;
}

}  // namespace paceline::transport
