// The state of one queue pair: requester, responder, and the links that tie it to its congestion
// context. Touched on the engine's thread only.
#pragma once

#include <cstdint>

#include "dataplane/base/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/port/packet.h"
#include "dataplane/transport/completion_queue.h"
#include "dataplane/transport/receive_queue.h"
#include "dataplane/transport/region.h"
#include "dataplane/transport/send_queue.h"
#include "dataplane/transport/types.h"
#include "dataplane/wire/addresses.h"
#include "dataplane/wire/build.h"

namespace paceline::transport {

inline constexpr std::uint32_t kNoIndex = 0xFFFF'FFFF;

struct QpConfig {
  QpType type = QpType::rc;
  std::uint8_t traffic_class = kDefaultDataClass;
  std::uint8_t retry_count = 7;     // timeouts and sequence NAKs without progress
  std::uint8_t rnr_retry = 7;       // 7 = for ever (vol. 1, 9.7.5.2.8)
  std::uint8_t min_rnr_timer = 12;  // code of table 45: 12 = 0.64 ms
  std::uint8_t arm = 0;             // experiment arm of its congestion context
  std::uint16_t send_queue_depth = 128;
  Picos retransmit_timeout = picos_from_micros(500);
  CompletionQueue* send_cq = nullptr;
  CompletionQueue* receive_cq = nullptr;
  ReceiveQueue* receive_queue = nullptr;  // may be shared
};

// What the two ends exchange out of band before a connection carries data.
struct QpAddress {
  wire::IpAddress ip{};
  wire::MacAddress mac{};
  std::uint32_t qp_number = 0;
  Psn first_psn;  // of the packets this end will send
};

struct RequesterState {
  explicit RequesterState(std::size_t depth) : queue(depth) {}

  SendQueue queue;
  Psn next_psn;                      // the next packet to go out
  Psn una_psn;                       // oldest unacknowledged
  Psn max_psn;                       // one past the highest ever sent: acknowledgements end here
  Psn tail_psn;                      // first PSN of the next request to be posted
  std::uint32_t cursor = 0;          // queue position of the request that next_psn belongs to
  std::uint32_t cursor_packet = 0;   // packet index within that request
  std::uint64_t inflight_bytes = 0;  // wire bytes of [una_psn, next_psn)
  std::uint64_t backlog_bytes = 0;   // payload bytes posted and not yet sent
  std::uint32_t since_ack_request = 0;
  Picos ack_requested_at{0};  // when a packet last asked for an ACK
  std::uint8_t retries_left = 0;
  std::uint8_t rnr_left = 0;
  bool waiting_memory = false;  // a source region answers later
  bool probe_active = false;    // one round trip is being timed
  Psn probe_psn;
  Picos probe_sent{0};
  Picos timeout_at = kNever;  // true deadline; the heap may hold an earlier one
  Picos blocked_until{0};     // RNR back-off
};

struct ResponderState {
  Psn expected;
  std::uint32_t msn = 0;  // messages completed, modulo 2^24
  std::uint32_t unacked_packets = 0;
  bool nak_sent = false;  // one NAK per gap
  bool in_message = false;
  bool message_is_write = false;
  bool receive_taken = false;
  bool waiting_memory = false;  // packets are parked until memory_ready
  std::uint32_t rkey = 0;       // of the WRITE in progress
  std::uint64_t address = 0;    // next byte of the message goes here
  std::uint64_t remaining = 0;  // WRITE: bytes announced and not yet placed
  std::uint64_t received = 0;   // bytes of the message placed so far
  ReceiveRequest receive{};     // of the SEND in progress
  Picos last_cnp{-1};           // negative: none sent yet
  Packet* parked_head = nullptr;
  Packet* parked_tail = nullptr;
};

struct QueuePair {
  QueuePair(std::uint32_t number_, const QpConfig& config_)
      : number(number_), config(config_), requester(config_.send_queue_depth) {}

  std::uint32_t number;
  QpState state = QpState::reset;
  std::uint32_t remote_number = 0;
  std::uint32_t peer = kNoIndex;         // engine's peer table
  std::uint32_t context = kNoIndex;      // congestion context that its data is charged to
  std::uint32_t next_active = kNoIndex;  // ring of the context's queue pairs with work
  std::uint32_t prev_active = kNoIndex;
  std::uint32_t deficit = 0;  // deficit round robin, bytes
  bool active = false;
  QpConfig config;
  wire::HeaderTemplate header;  // data packets to the peer
  RequesterState requester;
  ResponderState responder;
};

}  // namespace paceline::transport
