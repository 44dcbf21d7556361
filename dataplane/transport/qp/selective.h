// Selective repeat: what a queue pair keeps beyond the state of go-back-N. The sender notes for
// every packet of its window when and how it was sent and whether it has arrived; the receiver
// notes which packets have come ahead of the expected one, and holds those that must wait their
// turn. Both are rings indexed by packet sequence number, and are there only where both ends speak
// XACK.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/base/fixed_ring.h"
#include "dataplane/base/psn.h"
#include "dataplane/base/units.h"
#include "dataplane/transport/interface/types.h"
#include "dataplane/transport/state/round_trip.h"
#include "dataplane/transport/state/selective/early_packets.h"
#include "dataplane/transport/state/selective/loss_patience.h"
#include "dataplane/transport/state/selective/marked_bytes.h"
#include "dataplane/transport/state/selective/path_set.h"
#include "dataplane/transport/state/selective/pending_xack.h"
#include "dataplane/transport/state/send_position.h"

namespace paceline::transport {

namespace sent_flag {
inline constexpr std::uint8_t in_flight = 1U << 0;
inline constexpr std::uint8_t lost = 1U << 1;       // to be sent again
inline constexpr std::uint8_t delivered = 1U << 2;  // acknowledged; of a READ: the response is here
inline constexpr std::uint8_t request = 1U << 3;    // a READ or an atomic
inline constexpr std::uint8_t again = 1U << 4;      // sent, or asked for, more than once
// Of answers to READs and atomics.
inline constexpr std::uint8_t ends = 1U << 5;   // the last sequence number of its request
inline constexpr std::uint8_t late = 1U << 6;   // one that was sent later is here
inline constexpr std::uint8_t asked = 1U << 7;  // asked for once more
}  // namespace sent_flag

// Of an answer that is not here `sent_at` is when it was asked for, or when it turned out late.
struct SentPacket {
  Picos sent_at{0};
  std::uint32_t wire_bytes = 0;
  std::uint32_t extent = 0;  // payload bytes; of a request: sequence numbers that it takes
  std::uint16_t port = 0;    // the path it took
  std::uint8_t flags = 0;

  bool has(std::uint8_t any_of) const { return (flags & any_of) != 0; }
  void set(std::uint8_t which) { flags = static_cast<std::uint8_t>(flags | which); }
  void clear(std::uint8_t which) { flags = static_cast<std::uint8_t>(flags & ~which); }
};

// READ responses that are asked for again: a request of its own for [first, first + count).
struct ResponseAsk {
  Psn first;
  std::uint32_t count = 0;
  std::uint64_t bytes = 0;  // responder: of them, not sent yet
  bool begun = false;       // responder: one was sent
};

// A packet that the peer refused, and the status that its request completes with.
struct Refusal {
  Psn psn;
  CompletionStatus status;
};

struct SelectiveSend {
  explicit SelectiveSend(std::uint32_t window) : sent(window), asks(16) {}

  SentPacket& at(Psn psn) { return sent[psn.value() & (sent.size() - 1)]; }
  std::int32_t window() const { return static_cast<std::int32_t>(sent.size()); }
  // `end`, or the end of the window that begins with `una`, if that comes first.
  Psn within_window(Psn una, Psn end) const {
    return distance(end, una) > window() ? una + static_cast<std::uint32_t>(window()) : end;
  }
  // Sent, not acknowledged in order, and within the window.
  bool keeps(const SendPosition& position, Psn psn) const {
    return !before(psn, position.oldest()) && before(psn, position.next()) &&
           distance(psn, position.oldest()) < window();
  }
  // Requires lost != 0. What lies before is not looked at again.
  Psn oldest_lost() {
    while (!at(lost_from).has(sent_flag::lost)) ++lost_from;
    return lost_from;
  }

  std::vector<SentPacket> sent;  // a power of two
  Psn peer_expected;             // the peer has everything before it
  Psn highest;                   // one past the highest known to have arrived
  Psn lost_from;                 // nothing before it waits to be sent again
  Psn flying_from;               // nothing before it is in flight
  std::uint32_t lost = 0;        // packets that wait to be sent again
  FixedRing<ResponseAsk> asks;
  std::uint64_t ask_bytes = 0;      // on the wire, of those sent and not answered
  Psn responses_to;                 // one past the highest answer that came
  std::uint32_t missing = 0;        // answers before it that have not come
  Picos newest_ask{-1};             // latest time of asking among the answers asked for that came
  Picos doubted_at{-1};             // when an answer last came twice
  std::uint32_t answer_rtt_ns = 0;  // from asking to the answer; 0: not measured yet
  Picos newest_sent{-1};            // latest time of sending among what has arrived
  RoundTripEstimate round_trip;
  std::uint32_t last_rtt_ns = 0;  // a queue that has just grown shows here first
  MarkedBytes marked;
  LossPatience patience;
  std::uint8_t probes = 0;         // of the tail, since something arrived
  std::uint8_t held = 0;           // times in a row that nothing was under way when time was up
  std::optional<Refusal> refused;  // by the peer; requests before it may complete
  Picos progress_at{0};            // in EngineCore::awake()
  Picos reorder_at = kNever;       // a packet counts as lost then
  Picos response_at = kNever;      // answers that are missing are looked at then
};

struct SelectiveReceive {
  explicit SelectiveReceive(std::uint32_t window) : early(window), repairs(64) {}

  EarlyPackets early;
  PendingXack xack;
  FixedRing<ResponseAsk> repairs;     // READ responses asked for again, oldest first
  std::uint64_t continued_bytes = 0;  // of the WRITE in progress, its earlier packets
};

// Probes of the tail before the retransmission timer.
inline constexpr std::uint8_t kProbes = 2;

struct SelectiveState {
  explicit SelectiveState(std::uint32_t window) : send(window), receive(window) {}

  PathSet paths;  // of requests and of responses alike
  SelectiveSend send;
  SelectiveReceive receive;
};

}  // namespace paceline::transport
