// Unreliable datagrams (InfiniBand vol. 1, 9.8.3): one packet per message, each to where its
// address handle says. A queue pair sends in order, so at any time it belongs to the congestion
// context of its oldest datagram.
#include <algorithm>
#include <array>
#include <cstring>

#include "dataplane/transport/memory/memory_access.h"
#include "dataplane/transport/requester.h"
#include "dataplane/transport/responder.h"
#include "dataplane/wire/build.h"
#include "dataplane/wire/dscp.h"

namespace paceline::transport {

namespace {

std::uint8_t class_of(const wire::ParsedPacket& parsed) {
  return wire::kDefaultDscpMap.traffic_class(parsed.dscp);
}

}  // namespace

// --- requester ---

bool RequesterPart::build_datagram(QueuePair& qp, Packet& packet) {
  const RequesterState& r = qp.requester;
  const SendEntry& entry = r.queue.at(r.cursor);
  const QueuedRequest& request = entry.request;
  const auto payload = static_cast<std::uint32_t>(request.length);
  if (!fill_payload(qp, packet, r.cursor, 0, payload)) return false;
  AddressHandle& handle = core_.handles[request.address_handle >> 8];
  wire::TransportFields fields;
  fields.dest_qpn = request.target_qp_number;
  fields.psn = r.next_psn;
  fields.payload_bytes = payload;
  fields.solicited = request.solicited;
  // A key with the highest bit set means: the queue pair's own (vol. 1, 10.2.5).
  constexpr std::uint32_t kPrivileged = 0x8000'0000;
  const std::uint32_t qkey =
      (request.target_qkey & kPrivileged) != 0 ? qp.config.qkey : request.target_qkey;
  packet.header_bytes = static_cast<std::uint16_t>(wire::build_datagram(
      handle.header, wire::HeaderBuffer{packet.header}, fields, {qkey, qp.number},
      has_immediate(request.opcode) ? &request.immediate : nullptr));
  core_.finish_packet(handle.header, handle.path.traffic_class, packet, payload);
  core_.contexts[handle.context].backlog_bytes -= payload;
  --handle.uses;
  sent_unacknowledged(qp, handle.peer, payload, true);
  // The next one may be another context's business.
  if (r.cursor != r.queue.tail() &&
      context_of(core_, qp, r.queue.at(r.cursor).request) != qp.context) {
    qp.requester.stops |= requester_stop::target;
  }
  return true;
}

void RequesterPart::drop_datagrams(QueuePair& qp) {
  RequesterState& r = qp.requester;
  core_.actions.dropped(qp);
  for (; !r.queue.empty(); r.queue.pop()) {
    const QueuedRequest& request = r.queue.front().request;
    AddressHandle& handle = core_.handles[request.address_handle >> 8];
    core_.contexts[handle.context].backlog_bytes -= request.length;
    --handle.uses;
    core_.actions.idle(handle.context);
  }
  r.cursor = r.queue.tail();
  r.backlog_bytes = 0;
  r.next_psn = r.una_psn = r.max_psn = r.tail_psn;
  r.stops = 0;
  r.ordered = 0;
  r.draining = r.drained = false;
}

// --- responder ---

ResponderPart::Outcome ResponderPart::accept_datagram(QueuePair& qp,
                                                      const wire::ParsedPacket& parsed,
                                                      const Packet& packet) {
  ResponderState& r = qp.responder;
  if (parsed.ext.deth.qkey != qp.config.qkey) {  // 9.6.1.5: dropped, and counted
    ++core_.counters.qkey_violations;
    return Outcome::done;
  }
  const std::uint64_t bytes = std::uint64_t{kGrhBytes} + parsed.payload_bytes;
  const bool taken = take_receive(qp);
  if (!taken || bytes > r.receive.length) {
    // No buffer, or too small a one: it waits for the next datagram.
    ++core_.counters.unreliable_drops;
    ++(taken ? core_.counters.dropped_too_long : core_.counters.dropped_no_receive);
    return Outcome::done;
  }
  std::array<std::byte, kGrhBytes> grh{};
  const std::size_t ip_bytes = parsed.ipv6 ? wire::kIpv6Bytes : wire::kIpv4Bytes;
  std::memcpy(grh.data() + kGrhBytes - ip_bytes, packet.header.data() + parsed.l3_offset, ip_bytes);
  const Region* region = core_.regions.find(r.receive.local_key);
  MemoryResult result = MemoryResult::fault;
  bool mismatch = false;
  if (r.receive.segment_count != 0) {
    result = scatter_bytes(received_into(qp, 0, kGrhBytes), grh);
    if (result == MemoryResult::done && parsed.payload_bytes != 0) {
      result =
          scatter_payload(received_into(qp, kGrhBytes, parsed.payload_bytes), 0, packet, mismatch);
    }
  } else if (region != nullptr &&
             region->grants(qp.config.pd, access::local_write, r.receive.address, bytes)) {
    result = store_bytes(*region, {qp.number, true}, r.receive.address, grh);
    if (result == MemoryResult::done && parsed.payload_bytes != 0) {
      result = store_payload(*region, {qp.number, true, kGrhBytes}, r.receive.address + kGrhBytes,
                             parsed.payload_bytes, 0, packet, mismatch);
    }
  }
  if (mismatch) ++core_.counters.digest_mismatches;
  if (result == MemoryResult::pending) return Outcome::pending;
  if (result == MemoryResult::fault) {
    ++core_.counters.dropped_local_error;
    fail_receive(qp, CompletionStatus::local_protection_error);
    requester_.fail(qp, CompletionStatus::flushed);
    return Outcome::done;
  }
  ++core_.counters.rx_data_packets;
  core_.counters.rx_data_bytes += parsed.payload_bytes;
  qp.counters.rx_bytes += parsed.payload_bytes;
  ++qp.counters.completions;
  r.receive_taken = false;
  Completion completion;
  completion.wr_id = r.receive.wr_id;
  completion.bytes = bytes;
  completion.at = core_.now;
  completion.qp_number = qp.number;
  completion.opcode = CompletionOpcode::receive;
  completion.has_immediate = parsed.properties.has_immediate();
  completion.solicited = parsed.solicited;
  completion.immediate = parsed.ext.immediate;
  completion.source_qp_number = parsed.ext.deth.source_qpn;
  completion.has_grh = true;
  completion.ipv6 = parsed.ipv6;
  core_.complete(qp.config.receive_cq, completion);
  return Outcome::done;
}

// The sender is known by the packet alone: it may be nobody that we ever send to.
void ResponderPart::on_marked_datagram(QueuePair& qp, const wire::ParsedPacket& parsed,
                                       const Packet& packet) {
  ++core_.counters.rx_ce_packets;
  if (core_.config.cnp_in_ack) return;
  const std::uint32_t index = core_.peers.find(parsed.source, class_of(parsed));
  if (index != kNoIndex && core_.peers[index].echo != EcnEcho::cnp) return;
  const std::uint64_t flow = wire::hash_value(parsed.source) +
                             (std::uint64_t{parsed.ext.deth.source_qpn} << 32) + qp.number;
  DatagramMark& mark = core_.datagram_marks[wire::mix64(flow) % core_.datagram_marks.size()];
  if (mark.last.count >= 0 && core_.now - mark.last < core_.config.cnp_interval) return;
  Packet* cnp = core_.alloc_headers_only();
  if (cnp == nullptr) return;
  mark.last = core_.now;
  QpPath path;
  path.ip = parsed.source;
  path.mac = wire::MacAddress::load(packet.header.data() + 6);
  path.traffic_class = kControlClass;
  wire::FlowAddressing flow_back = core_.flow_to(path);
  flow_back.ecn = Ecn::not_ect;
  const wire::HeaderTemplate header = wire::make_header_template(flow_back);
  cnp->header_bytes = static_cast<std::uint16_t>(
      wire::build_cnp(header, wire::HeaderBuffer{cnp->header}, parsed.ext.deth.source_qpn));
  cnp->bth_offset = static_cast<std::uint16_t>(header.bth_offset());
  ++core_.counters.cnps_sent;
  ++qp.counters.cnps_sent;
  core_.queue_control(cnp);
}

}  // namespace paceline::transport
