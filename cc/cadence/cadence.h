// Cadence: proactive congestion control for unmodified Ethernet switches. The receiving port grants
// absolute rates with a lease (receiver/receiver.h). The sending port shares its uplink (sender.h).
// This state machine, one per channel (source port, destination port, class), obeys
//     rate = min(G grant, S uplink share, P path rate),   sent_total <= L,   in flight <= W.
// docs/algorithms/cadence.md holds the law, the invariants and the messages. There is no paper: it
// is our own design after ideas of SIRD, DASR, Flowtune, EQDS and Homa.
//
// Bytes. sent_total, the ceiling, unscheduled_total and demand count WIRE bytes of the channel's
// data packets, as PortFacts::full_packet_bytes does, retransmissions included. Every one of them
// is charged, in the fallback too. Event::backlog_bytes and message_bytes are payload bytes;
// Cadence adds the overhead of full packets itself. A packet may leave when sent_total + its wire
// bytes <= decision.ceiling. Bytes to be retransmitted count as backlog again before nack or
// timeout is delivered.
//
// Order of a start: Signal::message -> (uplink_want asks for start bytes) -> Signal::share with the
// answer -> a ceiling that covers the start bytes, and decision.request if they are not all. Until
// the share has come nothing may be sent; see uplink_arbiter.h for the engine's loop.
//
// Fallback contract (I5). When leases have run out and REQUESTs stay unanswered, the rate halves
// every RTT to R_fb and then decision.fallback becomes true, with rate R_fb, ceiling kUnlimited.
//   - The engine then starts the reactive algorithm on its own state with
//     Handover{rate = decision.rate, ...} and takes its decisions for this context, with ceiling
//     kUnlimited; acks, CNPs, nacks, timeouts go to that algorithm.
//   - It still delivers message, idle, grant, share, tick, port_* to Cadence, which probes with
//     REQUESTs (every 8 RTT, doubling to 1 ms) while there is backlog, and keeps calling
//     uplink_want/update. Cadence's wake_at stays valid beside the reactive algorithm's own.
//   - When a GRANT arrives decision.fallback is false again, rate and ceiling are Cadence's, and
//     the reactive state is dropped. sent_total never restarts.
// Leaving for another algorithm, or destroying the last queue pair: fill_request, set close, send.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cc/cadence/params.h"
#include "cc/interface/algorithm.h"
#include "cc/interface/uplink_arbiter.h"

namespace paceline::cc {

const AlgorithmInfo& cadence_info();

class Cadence {
 public:
  using Params = CadenceParams;

  enum class Phase : std::uint8_t {
    idle,        // no backlog; a grant, if any, was given up and the receiver knows it
    asking,      // message posted, start bytes asked for, nothing sent
    requesting,  // no grant yet; start bytes may be leaving
    granted,     // a grant (or HOLD) with a live lease is in force
    decaying,    // the lease ran out: G halves per RTT
    fallback,    // the reactive algorithm decides
    closing,     // backlog gone, grant given up, the receiver has not confirmed yet
  };

  struct State {
    // Cumulative wire bytes.
    std::uint64_t limit_total;   // L of the grants taken
    std::uint64_t start_end;     // sent_total up to which bytes leave without a grant
    std::uint64_t sent_total;    // as of the last event
    std::uint64_t backlog_wire;  // as of the last event, estimated wire bytes
    // Times in ns.
    std::int64_t lease_end;     // of the grant; while decaying, the next halving
    std::int64_t request_at;    // REQUEST timer (retry, refresh or probe)
    std::int64_t begin_at;      // next_mbps takes effect; kNeverNanos: there is none
    std::int64_t path_cut_at;   // last decrease of P
    std::int64_t path_step_at;  // next clean RTT
    // Rates in Mb/s.
    std::uint32_t grant_mbps;
    std::uint32_t next_mbps;  // a newcomer's grant that has not begun; 0: none
    std::uint32_t share_mbps;
    std::uint32_t cap_mbps;  // announced as tx_cap
    std::uint32_t path_mbps;
    std::uint32_t want_bytes;  // start bytes asked of the arbiter
    std::uint32_t started_us;  // last answer with start bytes
    std::uint32_t stamp_ns;    // timestamp of the last give-up, or of the newest grant's arrival
    std::uint32_t control_rtt_ns;  // of REQUEST and GRANT, smoothed; 0: none yet
    std::uint16_t refresh_us;      // REQUEST interval while granted...
    std::uint16_t spacing_us;      // ... but this at least, by the arbiter
    std::uint16_t degree;     // senders that the destination has at a time, by hint; 0: unknown
    std::uint16_t grant_seq;  // newest taken; 0 = none in force
    std::uint16_t seen_seq;   // newest seen, in force or not
    std::uint16_t req_seq;
    Phase phase;
    std::uint8_t probes;           // REQUESTs since the last GRANT
    std::uint8_t peer_count_hint;  // peers that have connections to the receiver
    bool unconfirmed;              // a give-up that the receiver may not know of yet
    bool asked;      // a REQUEST since the last idle asked for a grant: giving up must be told
    bool gave_up;    // stamp_ns is a give-up's: GRANTs that answer an older REQUEST are void
    bool seq_known;  // seen_seq is valid
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts) {
    return make_cadence_params(values, facts);
  }

  // See algorithm.h. decision.request is written by every call: act on it before the next event.
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);

  // Fills what Cadence knows: req_seq, grant_echo, sent_total, unscheduled_total, demand_bytes,
  // tx_cap_mbps, timestamp_ns. The engine sets close, traffic_class, echo_wanted, arm, epoch,
  // channel. event is the one just delivered. Every call is one REQUEST.
  static void fill_request(State& state, const Params& params, const Event& event,
                           RequestMessage& request);

  // For UplinkArbiter::update, after every event.
  static UplinkWant uplink_want(const State& state, const Params& params);
  static Rate waiting_rate(const Params& params) { return rate_from_mbps(params.fallback_mbps); }
};

static_assert(std::is_trivially_copyable_v<Cadence::State>);
static_assert(sizeof(Cadence::State) <= 128);

}  // namespace paceline::cc
