// The state that the parts of one engine share, and the few primitives that all of them need. Each
// part refers to it, and to the parts below it.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "cc/interface/downlink_allocator.h"
#include "cc/param_block.h"
#include "dataplane/base/containers/pointer_table.h"
#include "dataplane/base/units.h"
#include "dataplane/pacing/deadline_queue.h"
#include "dataplane/port/packet_pool.h"
#include "dataplane/port/port.h"
#include "dataplane/telemetry/cluster_figures.h"
#include "dataplane/telemetry/counters.h"
#include "dataplane/transport/core/actions.h"
#include "dataplane/transport/core/address_handle.h"
#include "dataplane/transport/core/arrival_stamps.h"
#include "dataplane/transport/core/congestion_context.h"
#include "dataplane/transport/core/domain_queues.h"
#include "dataplane/transport/core/engine_config.h"
#include "dataplane/transport/core/host_stops.h"
#include "dataplane/transport/core/param_table.h"
#include "dataplane/transport/core/peer_table.h"
#include "dataplane/transport/interface/async_events.h"
#include "dataplane/transport/memory/region.h"
#include "dataplane/transport/qp/queue_pair.h"
#include "dataplane/wire/headers/dscp.h"
#include "dataplane/wire/packet/icrc.h"
#include "dataplane/wire/packet/parse_error.h"

namespace paceline::transport {

// Room to reserve for `count` indices. One index gets exactly its room, without any ordering; more
// indices grow by doubling.
constexpr std::uint32_t roomy(std::uint32_t count) {
  return count <= 1 ? count : std::max<std::uint32_t>(8, std::bit_ceil(count));
}

static_assert(wire::kParseErrors <= telemetry::kMalformedReasons);

struct alignas(64) EngineCore {
  EngineCore(EngineConfig config_, Port& port_)
      : port(port_),
        pool(port_.packets()),
        info(port_.info()),
        facts{
            config_.flow_rate(info.link_rate),
            config_.payload_mtu,
            info.wire.wire_bytes(kPlainHeaderBytes + config_.payload_mtu + 8U, config_.payload_mtu),
            config_.base_rtt_ns,
            info.telemetry && config_.reliability == Reliability::selective,
            info.notices,
            static_cast<std::uint8_t>(config_.multipath == Multipath::none ? 1 : config_.planes)},
        config(std::move(config_)),
        peers(*config.memory) {}

  // The least headers of a packet on a connection: Ethernet, IPv4, UDP, BTH.
  static constexpr std::uint32_t kPlainHeaderBytes = 14 + 20 + 8 + 12;

  // The members are in the order of their use. In virtual time, hosts take turns packet by packet,
  // and each begins with its state outside the first-level cache. Every poll reads the first line,
  // and every packet the next few, a cache line each.
  Picos now{0};
  Port& port;
  PacketPool& pool;
  Packet* control_head = nullptr;   // control packets waiting for the port, oldest first
  bool cq_overrun = false;          // a completion queue has failed since the last poll ended
  bool control_active = false;      // time alone can cause an action of the control plane
  bool has_stopped = false;         // there was a stop: see `stops`
  bool acks_waiting = false;        // `waiting_acks` has some
  bool stamped = false;             // the current packet came before now, at `arrived`
  bool answers_last = false;        // as configured
  bool has_actions = false;         // `actions` has some
  pacing::DeadlineQueue qp_timers;  // retransmission and RNR timers, by QP index

  PointerTable<QueuePair> qps;  // by index; nullptr when destroyed
  ContextTable contexts;

  PortInfo info;
  bool finishes_more = !info.computes_icrc || info.notices;  // finish_more()
  cc::PortFacts facts;
  Packet* control_tail = nullptr;

  alignas(64) EngineConfig config;
  RegionTable regions;
  alignas(64) std::uint64_t unaccounted_bytes =
      0;  // came outside any channel, for the receiver's plan
  telemetry::EngineCounters counters{};
  std::uint64_t trimmed_bytes = 0;   // cut off from data on its way here, likewise
  std::uint32_t parked_packets = 0;  // wait for memory, of all queue pairs

  PeerTable peers;
  ParamTable params;                                // of the only arm, or of the first of two
  std::unique_ptr<ParamTable> second_params;        // exists once there are two arms
  std::unique_ptr<cc::DownlinkAllocator> receiver;  // proactive algorithms only
  // A list: addresses must be stable, and a host without queue pairs allocates nothing.
  std::pmr::list<QueuePair> qp_storage{config.memory};
  std::pmr::list<CongestionContext> context_storage{config.memory};  // likewise
  // Data packets by the cluster that they go to: sent for the first time, and again. Counted from
  // the first ArmsByPeer on.
  struct ClusterPackets {
    std::uint64_t sent = 0;
    std::uint64_t again = 0;
  };
  using ByCluster = std::array<ClusterPackets, telemetry::kMostClusters>;
  std::unique_ptr<ByCluster> packets_to;
  std::vector<std::uint32_t> free_contexts;
  std::array<std::int64_t, cc::kLimiters> retired_limiter_picos{};  // of destroyed contexts
  AsyncEventList events;
  HostStops stops;
  Actions actions{has_actions};
  Picos arrived{0};
  ArrivalStamps stamps;
  AddressHandleTable handles;
  std::array<LastDatagramCnp, 64> last_datagram_cnps{};  // when which datagram flow last got a CNP
  // ACKs among the waiting control packets that later ones may replace, by queue-pair number.
  // Forgotten when control packets leave.
  struct WaitingAck {
    const QueuePair* qp = nullptr;
    Packet* packet = nullptr;
  };
  static constexpr std::size_t kWaitingAcks = 8;
  std::array<WaitingAck, kWaitingAcks> waiting_acks{};
  std::uint32_t management_qp = 0;  // peers reach it as number 1, too; 0: none
  DomainQueues domain_queues;

  // Packets that wait for memory are bounded: a queue pair may add as many as the free room beyond
  // all of them. So memory that never answers does not take all of the room.
  static constexpr std::uint32_t kMostParked = 16'384;
  bool may_park(std::uint32_t own) const {
    return own + parked_packets < kMostParked && !pool.scarce();
  }
  // end: RequesterState or ResponderState.
  template <class End>
  void park(End& end, Packet* packet) {
    end.parked.push(packet);
    ++end.parked_packets;
    ++parked_packets;
  }
  template <class End>
  Packet* unpark(End& end) {
    --end.parked_packets;
    --parked_packets;
    return end.parked.pop();
  }

  // A queue-pair number: index + 16 (numbers 0 to 15 are reserved), then how often the index was
  // used before. So packets of a destroyed connection do not reach the connection that has its
  // place now.
  static constexpr unsigned kQpnIndexBits = 18;
  static constexpr std::uint32_t kQpnGenerations =
      63;  // of 64: keeps clear of 0xFFFFFD to 0xFFFFFF
  static constexpr std::uint32_t kMaxQps = (1U << kQpnIndexBits) - 16;
  static std::uint32_t qp_slot(std::uint32_t number) {
    return (number & ((1U << kQpnIndexBits) - 1)) - 16;
  }
  static std::uint32_t qp_number(std::uint32_t index, std::uint32_t generation) {
    return generation % kQpnGenerations << kQpnIndexBits | (index + 16);
  }
  // nullptr when there is no such queue pair.
  const QueuePair* find_qp(std::uint32_t number) const {
    const std::uint32_t slot = qp_slot(number);
    if (slot >= qps.size()) return nullptr;
    const QueuePair* qp = qps[slot];
    return qp != nullptr && qp->number == number ? qp : nullptr;
  }
  QueuePair* find_qp(std::uint32_t number) {
    return const_cast<QueuePair*>(std::as_const(*this).find_qp(number));
  }
  std::uint32_t qp_index(const QueuePair& qp) const { return qp_slot(qp.number); }
  // The number by which the datagrams of the queue pair name it.
  std::uint32_t number_to_peers(const QueuePair& qp) const {
    return qp.number == management_qp ? kManagementQpNumber : qp.number;
  }

  // The values in force of an algorithm that some context of this setup runs, or is about to run.
  const cc::ParamBlock& params_on(std::uint8_t setup_slot, cc::AlgorithmId id) const {
    if (setup_slot != 0) [[unlikely]]
      return second_params->at(id);
    return params.at(id);
  }
  const cc::ParamBlock& params_of(const CongestionContext& context) const {
    return params_on(context.setup_slot, context.algorithm);
  }

  // Data goes to this peer for the first time.
  void count_data(std::uint32_t peer) {
    ++counters.tx_data_packets;
    if (packets_to != nullptr) [[unlikely]]
      count_by_cluster(peer, &ClusterPackets::sent);
  }
  // Data of the queue pair that goes out again.
  void count_retransmitted(QueuePair& qp) {
    ++counters.retransmitted_packets;
    ++qp.counters.retransmitted_packets;
    if (packets_to != nullptr) [[unlikely]]
      count_by_cluster(qp.peer, &ClusterPackets::again);
  }
  // Out of line, so that the code that counts every packet stays small (engine_core.cc).
  [[gnu::cold]] void count_by_cluster(std::uint32_t peer, std::uint64_t ClusterPackets::*which);

  // Takes ownership; sent in order, ahead of all data, as soon as the port allows.
  void queue_control(Packet* packet) {
    packet->next = nullptr;
    packet->traffic_class = kControlClass;
    if (control_tail == nullptr) {
      control_head = packet;
    } else {
      control_tail->next = packet;
    }
    control_tail = packet;
  }

  // The time without the host's stops. Timeouts for peers are measured in it. Before the first stop
  // it is the time itself.
  Picos awake() const { return has_stopped ? now - stops.total : now; }
  Picos awake_to_time(Picos at) const {
    return has_stopped && at != kNever ? at + stops.total : at;
  }
  // When the current packet arrived: the time that its port gives, or else now, when it was found.
  Picos arrived_at() const { return stamped ? arrived : now; }
  // Whether the host stopped while what was sent then was in flight.
  bool spans_stop(Picos sent_at) const { return has_stopped && sent_at < stops.until; }

  wire::FlowAddressing flow_to(const QpPath& path) const {
    wire::FlowAddressing flow;
    flow.source_mac = config.mac;
    flow.destination_mac = path.mac;
    flow.source = config.source_for(path.ip);
    flow.destination = path.ip;
    flow.udp_source_port = path.source_port;
    flow.dscp = wire::kDefaultDscpMap.dscp(path.traffic_class);
    return flow;
  }

  // The source port of a queue pair's next packet under selective repeat.
  std::uint16_t next_path(SelectiveState& selective) {
    PathSet& paths = selective.paths;
    return paths.has_planes() ? paths.next_port(port.links_up()) : paths.next_port();
  }
  // No answer came to what the queue pair has sent. Its next packets take the next plane; if it
  // uses all planes in turn, they also take those that it left out.
  [[gnu::cold]] void change_plane(QueuePair& qp);

  // Finishes a data packet whose headers and payload are there: the steps that all packets need.
  void finish_packet(const QueuePair& qp, Packet& packet, std::uint32_t payload) {
    finish_packet(qp.header, qp.config.traffic_class, qp.context, packet, payload);
  }
  void finish_packet(const wire::HeaderTemplate& header, std::uint8_t traffic_class,
                     std::uint32_t context, Packet& packet, std::uint32_t payload) {
    packet.bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    packet.traffic_class = traffic_class;
    packet.ecn = Ecn::ect0;
    packet.wire_bytes = info.wire.wire_bytes(packet.frame_bytes(), payload);
    if (finishes_more) finish_more(header, context, packet);
    counters.tx_wire_bytes += packet.wire_bytes;
  }
  // Asks switches for notices if they send them and the algorithm wants them; makes the ICRC.
  void finish_more(const wire::HeaderTemplate& header, std::uint32_t context, Packet& packet);

  // A packet without payload, whose headers the caller fills in; nullptr (counted) when the pool is
  // empty.
  Packet* alloc_headers_only() {
    Packet* packet = pool.alloc();
    if (packet == nullptr) {
      ++counters.no_packet;
      return nullptr;
    }
    packet->payload_bytes = 0;
    packet->payload_kind = PayloadKind::none;
    packet->ecn = Ecn::not_ect;
    return packet;
  }

  // Payload that the queue pair's requester has yet to send: counted for the queue pair and for its
  // context. Bytes on the wire likewise.
  void add_backlog(QueuePair& qp, std::uint64_t bytes) {
    qp.requester.backlog_bytes += bytes;
    contexts[qp.context].backlog_bytes += bytes;
  }
  void take_backlog(QueuePair& qp, std::uint64_t bytes) {
    qp.requester.backlog_bytes -= bytes;
    contexts[qp.context].backlog_bytes -= bytes;
  }
  void take_inflight(QueuePair& qp, std::uint64_t bytes) {
    qp.requester.inflight_bytes -= bytes;
    contexts[qp.context].inflight_bytes -= bytes;
  }

  void count_malformed(wire::ParseError error) {
    ++counters.malformed[static_cast<std::size_t>(error)];
  }

  // A request of the queue pair is finished.
  void complete_send(QueuePair& qp, const QueuedRequest& request, CompletionStatus status) {
    Completion completion;
    completion.wr_id = request.wr_id;
    completion.at = now;
    completion.qp_number = qp.number;
    completion.status = status;
    completion.opcode = completion_opcode(request.opcode);
    if (status == CompletionStatus::success) {
      ++qp.counters.completions;
      completion.bytes = request.length;
    }
    complete(qp.config.send_cq, completion);
  }
  void complete(CompletionQueue* queue, const Completion& completion) {
    ++counters.completions;
    if (completion.status != CompletionStatus::success) ++counters.completion_errors;
    if (queue != nullptr && !queue->push(completion)) {
      ++counters.cq_overflows;
      cq_overrun = true;
    }
  }
};

static_assert(sizeof(PointerTable<QueuePair>) + sizeof(ContextTable) == 64);
static_assert(sizeof(PortInfo) + sizeof(cc::PortFacts) + sizeof(void*) == 64);

}  // namespace paceline::transport
