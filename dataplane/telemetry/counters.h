// Counters of an engine and of a queue pair. Plain 64-bit integers: the engine's thread increments
// them (`++counters.cnps_sent`); copies may be added up. Nothing in the dataplane decides on a
// counter.
//
// The name of a counter is the name of its field. for_each visits (name, value); a static assertion
// checks that no field is missing. Malformed packets are an array by reason. The names of the
// reasons are in `wire`, which telemetry does not include.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace paceline::telemetry {

// Slots for wire::ParseError. The code that counts asserts that they suffice.
inline constexpr std::size_t kMalformedReasons = 32;

// Slots for cc::Limiter.
inline constexpr std::size_t kLimiterKinds = 7;

// One engine, all arms together. "data" bytes are payload; "wire" bytes are what packets occupy on
// the link.
struct EngineCounters {
  // Traffic. The counters that a sender updates for every packet come first, then those of a
  // receiver: one cache line each.
  std::uint64_t rx_packets = 0;  // everything that arrived
  std::uint64_t rx_wire_bytes = 0;
  std::uint64_t acks_received = 0;
  std::uint64_t tx_data_packets = 0;  // first transmissions
  std::uint64_t tx_data_bytes = 0;
  std::uint64_t tx_wire_bytes = 0;       // of data packets, retransmissions included
  std::uint64_t tx_control_packets = 0;  // ACK, NAK, CNP, HELLO, REQUEST, GRANT
  std::uint64_t rx_data_packets = 0;     // accepted in sequence
  std::uint64_t rx_data_bytes = 0;
  std::uint64_t rx_ce_packets = 0;  // data packets that arrived marked
  std::uint64_t acks_sent = 0;
  std::uint64_t retransmitted_packets = 0;  // beyond the first transmissions
  std::uint64_t retransmitted_bytes = 0;

  // Reliability.
  std::uint64_t acks_coalesced = 0;  // not sent: a later ACK of the same poll took their place
  std::uint64_t stale_acks = 0;      // ACK or NAK outside the window of unacknowledged PSNs
  std::uint64_t naks_sent = 0;       // PSN sequence error
  std::uint64_t naks_received = 0;
  std::uint64_t error_naks_sent = 0;  // invalid request, remote access, remote operational
  std::uint64_t error_naks_received = 0;
  std::uint64_t implied_naks = 0;  // READ responses found missing by later responses
  std::uint64_t rnr_sent = 0;      // receiver not ready
  std::uint64_t rnr_received = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t duplicates = 0;       // requests seen before
  std::uint64_t out_of_sequence = 0;  // requests ahead of the expected PSN
  std::uint64_t placed_early = 0;     // WRITEs among these that were placed at once
  std::uint64_t held_early = 0;       // packets among these that waited for their turn
  std::uint64_t beyond_window = 0;    // of these, or of READ responses: too far ahead, dropped
  std::uint64_t lost_packets = 0;     // selective repeat: found missing, sent again
  std::uint64_t tail_probes = 0;      // selective repeat: sent again for a missing acknowledgement
  std::uint64_t rx_trimmed = 0;       // data packets that arrived without their payload
  std::uint64_t trim_losses = 0;      // of lost_packets, those that the peer received trimmed
  std::uint64_t ghost_requests = 0;   // repeated READs and atomics without a kept response
  std::uint64_t completions = 0;
  std::uint64_t completion_errors = 0;  // of these, not successful
  std::uint64_t cq_overflows = 0;

  // Congestion control.
  std::uint64_t cnps_sent = 0;
  std::uint64_t cnps_received = 0;
  std::uint64_t notices_received = 0;  // of switches
  std::uint64_t hellos_sent = 0;       // answers included
  std::uint64_t hellos_received = 0;
  std::uint64_t requests_sent = 0;
  std::uint64_t requests_received = 0;
  std::uint64_t grants_sent = 0;
  std::uint64_t grants_received = 0;
  std::uint64_t control_bytes = 0;       // of HELLO, REQUEST, GRANT sent, on the wire
  std::uint64_t control_ignored = 0;     // unknown peer or channel, or control switched off
  std::uint64_t fallbacks = 0;           // times a context switched to its fallback algorithm
  std::uint64_t plugin_clamped = 0;      // decisions of a plug-in clamped to the allowed range
  std::uint64_t plugin_nonsense = 0;     // decisions of a plug-in that are not meaningful
  std::uint64_t plugin_slow = 0;         // timed calls of a plug-in that exceeded the budget
  std::uint64_t plugin_quarantines = 0;  // plug-ins that are not called any more
  std::uint64_t plugin_receiver_quarantines = 0;  // of these, because of the receiving half

  // Why a packet that arrived was not delivered. Each such packet counts exactly once: in this
  // group, in rnr_sent, in rx_trimmed or in a kind of malformed (for_each_undelivered, below).
  std::uint64_t no_queue_pair = 0;
  std::uint64_t wrong_state = 0;  // the queue pair accepts none, or failed while the packet waited
  std::uint64_t qkey_violations = 0;  // UD
  std::uint64_t unsupported_operations = 0;
  std::uint64_t dropped_no_receive = 0;    // UC, UD: no receive request, or no room
  std::uint64_t dropped_too_long = 0;      // UC, UD: longer than receive request or WRITE
  std::uint64_t dropped_no_access = 0;     // UC: no right to the memory it names
  std::uint64_t dropped_bad_request = 0;   // UC: length invalid for its opcode
  std::uint64_t dropped_local_error = 0;   // UC, UD: our own receive request cannot be written
  std::uint64_t dropped_gap = 0;           // after a missing packet, too far ahead, no room
  std::uint64_t dropped_stale = 0;         // seen before, or a response to no request
  std::uint64_t dropped_refused = 0;       // RC: answered by an error NAK
  std::uint64_t dropped_bad_response = 0;  // a response that put the queue pair in error

  // Parts of acks_received and of cnps_received.
  std::uint64_t atomic_answers = 0;
  std::uint64_t becns_received = 0;  // CNPs within acknowledgements

  // Refused or delayed.
  std::uint64_t unreliable_drops = 0;   // UC and UD: messages not taken (gap, no receive, no right)
  std::uint64_t digest_mismatches = 0;  // elided payloads that arrived at a wrong address
  std::uint64_t memory_waits = 0;       // times an access to a region had to wait
  std::uint64_t tx_lent_bytes = 0;      // of tx_data_bytes and repairs: sent without a copy
  std::uint64_t no_packet = 0;          // times the pool was empty
  std::uint64_t tx_stalled = 0;         // packets that the port refused although it was ready

  std::array<std::uint64_t, kMalformedReasons> malformed{};  // by wire::ParseError
};

// Counters of a queue pair, for its telemetry::QueuePairRecord.
struct QueuePairCounters {
  std::uint64_t tx_bytes = 0;
  std::uint64_t rx_bytes = 0;
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t naks_received = 0;
  std::uint64_t rnr_received = 0;
  std::uint64_t timeouts = 0;
  std::uint64_t cnps_sent = 0;
  std::uint64_t cnps_received = 0;
  std::uint64_t completions = 0;
};

struct CounterName {
  std::string_view name;
  std::uint64_t EngineCounters::*field;
};

namespace detail {

#define PACELINE_COUNTER(field) \
  CounterName { #field, &EngineCounters::field }

inline constexpr auto kCounters = std::to_array<CounterName>({
    PACELINE_COUNTER(rx_packets),
    PACELINE_COUNTER(rx_wire_bytes),
    PACELINE_COUNTER(acks_received),
    PACELINE_COUNTER(tx_data_packets),
    PACELINE_COUNTER(tx_data_bytes),
    PACELINE_COUNTER(tx_wire_bytes),
    PACELINE_COUNTER(tx_control_packets),
    PACELINE_COUNTER(rx_data_packets),
    PACELINE_COUNTER(rx_data_bytes),
    PACELINE_COUNTER(rx_ce_packets),
    PACELINE_COUNTER(acks_sent),
    PACELINE_COUNTER(retransmitted_packets),
    PACELINE_COUNTER(retransmitted_bytes),
    PACELINE_COUNTER(acks_coalesced),
    PACELINE_COUNTER(stale_acks),
    PACELINE_COUNTER(naks_sent),
    PACELINE_COUNTER(naks_received),
    PACELINE_COUNTER(error_naks_sent),
    PACELINE_COUNTER(error_naks_received),
    PACELINE_COUNTER(implied_naks),
    PACELINE_COUNTER(rnr_sent),
    PACELINE_COUNTER(rnr_received),
    PACELINE_COUNTER(timeouts),
    PACELINE_COUNTER(duplicates),
    PACELINE_COUNTER(out_of_sequence),
    PACELINE_COUNTER(placed_early),
    PACELINE_COUNTER(held_early),
    PACELINE_COUNTER(beyond_window),
    PACELINE_COUNTER(lost_packets),
    PACELINE_COUNTER(tail_probes),
    PACELINE_COUNTER(rx_trimmed),
    PACELINE_COUNTER(trim_losses),
    PACELINE_COUNTER(ghost_requests),
    PACELINE_COUNTER(completions),
    PACELINE_COUNTER(completion_errors),
    PACELINE_COUNTER(cq_overflows),
    PACELINE_COUNTER(cnps_sent),
    PACELINE_COUNTER(cnps_received),
    PACELINE_COUNTER(notices_received),
    PACELINE_COUNTER(hellos_sent),
    PACELINE_COUNTER(hellos_received),
    PACELINE_COUNTER(requests_sent),
    PACELINE_COUNTER(requests_received),
    PACELINE_COUNTER(grants_sent),
    PACELINE_COUNTER(grants_received),
    PACELINE_COUNTER(control_bytes),
    PACELINE_COUNTER(control_ignored),
    PACELINE_COUNTER(fallbacks),
    PACELINE_COUNTER(plugin_clamped),
    PACELINE_COUNTER(plugin_nonsense),
    PACELINE_COUNTER(plugin_slow),
    PACELINE_COUNTER(plugin_quarantines),
    PACELINE_COUNTER(plugin_receiver_quarantines),
    PACELINE_COUNTER(no_queue_pair),
    PACELINE_COUNTER(wrong_state),
    PACELINE_COUNTER(qkey_violations),
    PACELINE_COUNTER(unsupported_operations),
    PACELINE_COUNTER(dropped_no_receive),
    PACELINE_COUNTER(dropped_too_long),
    PACELINE_COUNTER(dropped_no_access),
    PACELINE_COUNTER(dropped_bad_request),
    PACELINE_COUNTER(dropped_local_error),
    PACELINE_COUNTER(dropped_gap),
    PACELINE_COUNTER(dropped_stale),
    PACELINE_COUNTER(dropped_refused),
    PACELINE_COUNTER(dropped_bad_response),
    PACELINE_COUNTER(atomic_answers),
    PACELINE_COUNTER(becns_received),
    PACELINE_COUNTER(unreliable_drops),
    PACELINE_COUNTER(digest_mismatches),
    PACELINE_COUNTER(memory_waits),
    PACELINE_COUNTER(tx_lent_bytes),
    PACELINE_COUNTER(no_packet),
    PACELINE_COUNTER(tx_stalled),
});

}  // namespace detail

using CounterWords = std::array<std::uint64_t, sizeof(EngineCounters) / sizeof(std::uint64_t)>;
static_assert(detail::kCounters.size() + kMalformedReasons == CounterWords{}.size());

// visit(name, value) for every named counter, in the order of declaration.
template <class Visit>
constexpr void for_each(const EngineCounters& counters, Visit&& visit) {
  for (const CounterName& entry : detail::kCounters) visit(entry.name, counters.*entry.field);
}

// Adds every counter, including the array's.
constexpr EngineCounters& operator+=(EngineCounters& into, const EngineCounters& from) {
  auto sum = std::bit_cast<CounterWords>(into);
  const auto add = std::bit_cast<CounterWords>(from);
  for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += add[i];
  return into = std::bit_cast<EngineCounters>(sum);
}

// Malformed packets of every reason.
constexpr std::uint64_t malformed_total(const EngineCounters& counters) {
  std::uint64_t total = 0;
  for (const std::uint64_t count : counters.malformed) total += count;
  return total;
}

namespace detail {

inline constexpr auto kUndelivered = std::to_array<CounterName>({
    PACELINE_COUNTER(no_queue_pair),
    PACELINE_COUNTER(wrong_state),
    PACELINE_COUNTER(qkey_violations),
    PACELINE_COUNTER(unsupported_operations),
    PACELINE_COUNTER(dropped_no_receive),
    PACELINE_COUNTER(dropped_too_long),
    PACELINE_COUNTER(dropped_no_access),
    PACELINE_COUNTER(dropped_bad_request),
    PACELINE_COUNTER(dropped_local_error),
    PACELINE_COUNTER(dropped_gap),
    PACELINE_COUNTER(dropped_stale),
    PACELINE_COUNTER(dropped_refused),
    PACELINE_COUNTER(dropped_bad_response),
    PACELINE_COUNTER(rnr_sent),
    PACELINE_COUNTER(rx_trimmed),
});

}  // namespace detail

#undef PACELINE_COUNTER

// visit(name, value) for every reason why a packet that arrived was not delivered.
template <class Visit>
constexpr void for_each_undelivered(const EngineCounters& counters, Visit&& visit) {
  for (const auto& entry : detail::kUndelivered) visit(entry.name, counters.*entry.field);
  visit(std::string_view("malformed"), malformed_total(counters));
}

// The fates of the packets that arrived add up to rx_packets, less those that an engine still
// holds. An engine with control switched off counts all control messages as ignored.
constexpr std::uint64_t packets_accounted(const EngineCounters& c, bool speaks_control) {
  std::uint64_t sum = c.rx_data_packets + (c.acks_received - c.atomic_answers) +
                      (c.cnps_received - c.becns_received) + c.notices_received;
  sum += speaks_control ? c.hellos_received + c.requests_received + c.grants_received
                        : c.control_ignored;
  for_each_undelivered(c, [&](std::string_view, std::uint64_t count) { sum += count; });
  return sum;
}

}  // namespace paceline::telemetry
