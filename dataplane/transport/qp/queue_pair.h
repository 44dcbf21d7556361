// The state of one queue pair: requester, responder, and the links that tie it to its congestion
// context. Touched on the engine's thread only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/protocol/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"
#include "dataplane/telemetry/counters.h"
#include "dataplane/transport/interface/attributes.h"
#include "dataplane/transport/interface/completion_queue.h"
#include "dataplane/transport/interface/qp_config.h"
#include "dataplane/transport/interface/receive_queue.h"
#include "dataplane/transport/interface/types.h"
#include "dataplane/transport/memory/region.h"
#include "dataplane/transport/qp/response_queue.h"
#include "dataplane/transport/qp/selective.h"
#include "dataplane/transport/qp/send_queue.h"
#include "dataplane/transport/state/ack_requests.h"
#include "dataplane/transport/state/drain.h"
#include "dataplane/transport/state/incoming_message.h"
#include "dataplane/transport/state/pending_answer.h"
#include "dataplane/transport/state/rate_limit.h"
#include "dataplane/transport/state/receive_position.h"
#include "dataplane/transport/state/retry_budget.h"
#include "dataplane/transport/state/round_trip.h"
#include "dataplane/transport/state/send_position.h"
#include "dataplane/wire/headers/addresses.h"
#include "dataplane/wire/packet/build.h"

namespace paceline::transport {

inline constexpr std::uint32_t kNoIndex = 0xFFFF'FFFF;

namespace requester_stop {
inline constexpr std::uint8_t memory = 1U << 0;  // a source region answers later
inline constexpr std::uint8_t order = 1U << 1;   // depth of READs and atomics, fence, SQD
inline constexpr std::uint8_t target = 1U << 2;  // UD: the next datagram goes to another context
// Selective repeat: all places for packets are in use.
inline constexpr std::uint8_t window = 1U << 3;
}  // namespace requester_stop

namespace responder_halt {
inline constexpr std::uint8_t memory = 1U << 0;         // packets are parked until memory_ready
inline constexpr std::uint8_t error_pending = 1U << 1;  // the last answer waits to be given
}  // namespace responder_halt

// Packets set aside, oldest first.
struct PacketFifo {
  Packet* head = nullptr;
  Packet* tail = nullptr;

  bool empty() const { return head == nullptr; }
  void push(Packet* packet) {
    packet->next = nullptr;
    (tail == nullptr ? head : tail->next) = packet;
    tail = packet;
  }
  void push_front(Packet* packet) {
    packet->next = head;
    head = packet;
    if (tail == nullptr) tail = packet;
  }
  Packet* pop() {
    Packet* packet = head;
    head = packet->next;
    if (head == nullptr) tail = nullptr;
    return packet;
  }
};

struct alignas(64) RequesterState {
  explicit RequesterState(const QpConfig& config)
      : queue(config.send_queue_depth),
        segments(config.max_send_segments > 1 ? queue.capacity() * config.max_send_segments : 0),
        inline_bytes(queue.capacity() * std::size_t{config.max_inline}) {}

  // The bytes of the newest request, summed over its segment list.
  std::uint64_t posted_length() const { return queue.at(queue.tail() - 1).request.length; }

  // A packet that goes out and an acknowledgement that comes in touch the next two cache lines.
  SendQueue queue;
  SendPosition position;
  std::uint32_t ordering_constraints = 0;  // queued requests with responses or a fence; one more
                                           // in SQD, one more while credits are limited
  std::uint64_t inflight_bytes = 0;  // wire bytes from the oldest unacknowledged packet to the next
  std::uint64_t backlog_bytes = 0;   // payload bytes posted and not yet sent

  Picos blocked_until{0};     // RNR back-off
  Picos timeout_at = kNever;  // in EngineCore::awake(); the queue may hold an earlier one
  // The padding at the end of these two holds what comes next.
  [[no_unique_address]] AckRequests ack_requests;
  RetryBudget retries;
  std::uint8_t stops = 0;  // of requester_stop: why nothing may be sent now
  std::uint8_t outstanding_reads =
      0;  // READs and atomics between the oldest request and the next packet
  [[no_unique_address]] RoundTripProbe probe;
  bool gap_known = false;           // the oldest missing response was asked for again
  bool selective = false;           // losses are repaired one by one: QueuePair::selective
  bool repair : 1 = false;          // some of these are to be sent again
  bool credit_limited : 1 = false;  // credit_limit is in force
  bool response_waits : 1 = false;  // the memory for a response answers later
  bool rate_limited : 1 = false;    // rate_limit is in force
  bool peer_selective : 1 = false;  // the peer's responder is known to answer by XACK
  // The same, learned while requests are in flight under go-back-N: no request begins before they
  // are complete, and then losses are repaired one by one.
  bool turning : 1 = false;
  PacketFifo parked;  // responses that arrived while response_waits

  // The two cache lines end here.
  Psn tail_psn;  // first PSN of the next request to be posted
  std::uint32_t parked_packets = 0;
  std::uint32_t ssn = 0;           // of the newest request
  std::uint32_t credit_limit = 0;  // highest SSN that the peer has a receive request for
  Drain drain;
  RoundTripEstimate round_trip;  // under go-back-N
  RateLimit rate_limit;
  std::vector<Segment> segments;        // of queued requests, by place in the queue
  std::vector<std::byte> inline_bytes;  // likewise
};
static_assert(offsetof(RequesterState, blocked_until) == 64);
static_assert(offsetof(RequesterState, tail_psn) == 128);

// How a responder's answers are sent: as control packets, of RC or of XRC, or together with its
// data (see Answers::send_answer).
enum class AnswerWay : std::uint8_t { control, control_xrc, data };

struct alignas(64) ResponderState {
  explicit ResponderState(const QpConfig& config)
      : tells_credits(config.receive_queue != nullptr && !config.receive_queue->shared()),
        answers(is_xrc(config.type) ? AnswerWay::control_xrc : AnswerWay::control),
        responses(config.max_dest_rd_atomic),
        receive_segments(most_segments(config)) {}

  static unsigned most_segments(const QpConfig& config) {
    if (config.type == QpType::xrc_target) return kMaxSegments;  // whatever the queue
    const ReceiveQueue* const queue = config.receive_queue;
    return queue != nullptr && queue->max_segments() > 1 ? queue->max_segments() : 0;
  }

  // A WRITE packet in sequence and its ACK touch one cache line of this struct; a SEND also the
  // next.
  [[no_unique_address]] ReceivePosition position;  // the padding at its end holds what comes next
  bool receive_taken = false;
  std::uint8_t halts = 0;       // of responder_halt
  bool tells_credits = false;   // ACKs say how many receive requests there are
  bool response_waits = false;  // the memory that a READ reads answers later
  bool selective = false;       // QueuePair::selective is there
  AnswerWay answers;
  IncomingMessage message;
  Picos last_cnp{-1};  // negative: none sent yet
  ResponseQueue responses;
  ReceiveRequest receive{};  // of the SEND in progress

  PendingAnswer answer;             // behind the responses
  std::uint64_t backlog_bytes = 0;  // of READ responses not yet sent
  PacketFifo parked;
  std::uint32_t parked_packets = 0;
  std::uint32_t srq_number = 0;  // XRC target: QpConfig::receive_queue is this one; 0: none
  std::vector<Segment> receive_segments;  // of `receive`
};
// ResponseQueue begins with the count of responses due.
static_assert(offsetof(ResponderState, responses) < 64);

// In virtual time, hosts take turns packet by packet, and on a host with many queue pairs each
// packet is for another one: the common cases must touch few cache lines. The first line here
// serves all of them; then the template's first, the requester's first two, the responder's first.
struct alignas(64) QueuePair {
  QueuePair(std::uint32_t number_, const QpConfig& config_)
      : number(number_),
        requests(requests_of(config_.type)),
        responses(responses_of(config_.type)),
        config(config_),
        requester(config_),
        responder(config_) {
    unreliable = !is_reliable(config.type);
  }

  // What peers may send to a queue pair.
  static constexpr wire::Service requests_of(QpType type) {
    if (type == QpType::xrc_target) return wire::Service::xrc;
    if (type == QpType::xrc_initiator) return wire::Service::none;
    return type == QpType::rc ? wire::Service::rc : wire::Service::uc;
  }
  static constexpr wire::Service responses_of(QpType type) {
    if (type == QpType::xrc_initiator) return wire::Service::xrc;
    return type == QpType::rc ? wire::Service::rc : wire::Service::none;
  }

  std::uint32_t number;
  QpState state = QpState::reset;
  bool active = false;
  bool unreliable = false;      // UC or UD: nothing is acknowledged
  bool established = false;     // a packet of the peer has come
  bool response_ready = false;  // a READ response may go out now
  std::uint8_t sent_class = 0;  // of its newest packet as a requester
  wire::Service requests;       // of the packets that it accepts; UD does not use it
  wire::Service responses;
  std::uint32_t remote_number = 0;
  std::uint32_t peer = kNoIndex;         // engine's peer table
  std::uint32_t context = kNoIndex;      // congestion context that its data is charged to
  std::uint32_t next_active = kNoIndex;  // ring of the context's queue pairs with work
  std::uint32_t prev_active = kNoIndex;
  std::uint32_t deficit = 0;      // deficit round robin, bytes
  std::int32_t lane_balance = 0;  // bytes of requests beyond those of responses, while both wait
  std::uint32_t mtu = 0;          // payload bytes of a full packet
  std::uint32_t peer_v4 = 0;      // the peer's IPv4 address; 0: not attached, or not IPv4
  QpConfig config;
  QpPath path{};                // from RTR on
  wire::HeaderTemplate header;  // data packets to the peer
  RequesterState requester;
  ResponderState responder;
  std::unique_ptr<SelectiveState> selective;  // the peer speaks XACK
  // Bytes of a message are counted at its end; figures_of() (queue_pair_figures.h) adds those of
  // messages in progress.
  telemetry::QueuePairCounters counters{};
};
static_assert(offsetof(QueuePair, config) + offsetof(QpConfig, min_rnr_timer) == 64);

// The memory that a new queue pair takes.
inline std::size_t queue_pair_bytes(const QpConfig& config) {
  const std::size_t segments = config.max_send_segments > 1 ? config.max_send_segments : 0;
  return sizeof(QueuePair) +
         std::bit_ceil(std::size_t{config.send_queue_depth}) *
             (sizeof(SendEntry) + segments * sizeof(Segment) + config.max_inline);
}

}  // namespace paceline::transport
