// Events that the transport engine passes to a congestion-control algorithm. Add fields to the
// event rather than functions. Times are nanoseconds (rounded down), totals are cumulative bytes.
#pragma once

#include <cstdint>

#include "dataplane/base/protocol/control_messages.h"
#include "dataplane/base/protocol/int_stack.h"
#include "dataplane/base/units.h"

namespace paceline::cc {

struct UplinkShare;  // uplink_arbiter.h

enum class Signal : std::uint8_t {
  start,        // the context begins (or takes over a connection: see Handover)
  ack,          // acked_bytes newly acknowledged
  nack,         // the receiver saw a gap; lost_bytes go out again
  timeout,      // retransmission timer expired
  cnp,          // congestion notification packet
  grant,        // *grant is valid
  notice,       // a switch reports its queue: feedback
  message = 7,  // new work was posted: message_bytes
  idle,         // backlog reached 0: the last byte was sent
  tick,         // wake_at or wake_bytes was reached
  share = 12,   // *share is valid: the arbiter of the own port changed this context's share
};
inline constexpr unsigned kSignals = 13;
constexpr std::uint32_t signal_bit(Signal s) { return 1U << static_cast<unsigned>(s); }
// In addition to the wanted signals: data collects records of switches, and its acknowledgements
// bring them (Event::int_stack).
inline constexpr std::uint32_t kWantsTelemetry = 1U << 31;
// Only those Signal::ack whose round trip is above twice the unloaded one: packets were queued.
inline constexpr std::uint32_t kWantsRoundTrips = 1U << 30;

// State handed from one algorithm to the next on a live connection; zero rate = none.
struct Handover {
  Rate rate{};
  std::uint32_t srtt_ns = 0;
  std::uint32_t min_rtt_ns = 0;
  std::uint64_t inflight_bytes = 0;
};

struct Event {
  Nanos now{};
  std::uint64_t sent_total = 0;      // put on the wire by this context, retransmissions included
  std::uint64_t backlog_bytes = 0;   // posted and not yet sent, over all its queue pairs
  std::uint64_t inflight_bytes = 0;  // wire bytes sent and not yet acknowledged
  std::uint64_t sent_bytes = 0;      // put on the wire since the previous event
  std::uint64_t message_bytes = 0;   // Signal::message; backlog_bytes contains them already
  std::uint32_t acked_bytes = 0;
  std::uint32_t marked_bytes = 0;  // of acked_bytes, those that arrived CE-marked (XACK only)
  std::uint32_t lost_bytes = 0;
  std::uint32_t rtt_ns = 0;           // 0 = no sample with this event
  std::uint32_t host_delay_ns = 0;    // with rtt_ns, not in it: spent in the far host (XACK only)
  std::uint32_t hint_collective = 0;  // Signal::message: the work request's hint, 0 = none
  std::uint16_t hint_degree = 0;
  std::uint16_t hint_kind = 0;
  Signal signal = Signal::start;
  // Signal::start, and a tick when it has changed: how many peers have connections to the peer's
  // port, as that port reports it (peer_count_hint_of); 0 = not reported.
  std::uint8_t peer_count_hint = 0;
  // Signal::notice: how congested the queue is, 1 to kMostFeedback.
  std::uint8_t feedback = 0;
  const GrantMessage* grant = nullptr;
  const void* reserved = nullptr;  // plug-ins have the same layout (plugin/call.cc)
  const UplinkShare* share = nullptr;
  const Handover* handover = nullptr;
  // Signal::ack, Signal::nack: what switches recorded on the way of the answered packet; nullptr =
  // nothing came back with this event.
  const IntStack* int_stack = nullptr;
  std::uint32_t trimmed_bytes = 0;  // of lost_bytes, what switches cut off to avoid dropping it
  std::uint32_t peers = 0;          // of plug-ins with rates (cc/plugin/rates/context.h)
};

}  // namespace paceline::cc
