// Parts of the sender's state machine that only read the state or touch one aspect of it: start
// bytes, path rate, the receiver's word, and the decision that follows from the state. For the
// sender's files of this folder alone.
#pragma once

#include <algorithm>
#include <cstdint>

#include "cc/cadence/cadence.h"

namespace paceline::cc::cadence {

using State = Cadence::State;
using Phase = Cadence::Phase;

// Beyond the packets' own overhead: RETH (16), immediate (4), padding (3), rounded up.
inline constexpr std::uint32_t kMessageSlackBytes = 32;
// Grants cannot be older than this: after it, timestamps (which wrap after 4.29 s) are not asked.
inline constexpr std::int64_t kStampValidNs = 1'000'000'000;
// U_adv describes the last 8 RTT at the receiver (its start window); after every further 8 RTT
// without news the sender assumes half as many competitors.
inline constexpr std::int64_t kBudgetRtts = 8;

inline bool has_backlog(const State& s) { return s.backlog_wire > 0; }
inline bool in_start(const State& s) { return s.sent_total < s.start_end; }

// Some of the backlog is not covered by announced start bytes, or might not be: every wish contains
// the slack, a reduced answer may not.
inline bool needs_grant(const State& s) {
  return has_backlog(s) && s.sent_total + s.backlog_wire + kMessageSlackBytes > s.start_end;
}

inline std::uint32_t stamp(std::int64_t now_ns) { return static_cast<std::uint32_t>(now_ns); }

// First interval of a phase's probes, in ns.
inline std::uint32_t first_probe(const CadenceParams& p, Phase phase) {
  return static_cast<std::uint32_t>(phase == Phase::fallback ? 8 * p.rtt_ns : 2 * p.rtt_ns);
}
// A phase begins, and so do the intervals of its probes.
void enter(State& s, const CadenceParams& p, Phase phase);
// Drops whatever was granted. Called before the REQUEST that says so is filled.
void give_up(State& s, std::int64_t now);
// The REQUEST with demand 0, repeated until the receiver confirms.
void close(State& s, const CadenceParams& p, std::int64_t now, Decision& d);

// Messages of the receiver (grant_handler.cc).
void on_grant(State& s, const CadenceParams& p, const Event& e, Decision& d);
void on_path(State& s, const CadenceParams& p, const Event& e);

// Start bytes (wire) to ask for when `message` payload bytes were posted.
std::uint32_t start_wish(const State& s, const CadenceParams& p, std::int64_t now,
                         std::uint64_t message);

// P: sets it after congestion, and lets it grow for every round trip without any.
void cut_path(State& s, const CadenceParams& p, std::int64_t now, std::uint64_t rate);
void grow_path(State& s, const CadenceParams& p, std::int64_t now);
// P by delay: a round trip that neither the path nor the receiver's port explains.
// Returns whether P was cut.
bool take_round_trip(State& s, const CadenceParams& p, std::int64_t now, std::uint32_t rtt_ns);
// Bytes that a rate may have under way.
std::uint64_t path_window(const State& s, const CadenceParams& p, std::int64_t now,
                          std::uint32_t rate);

// A grant that is worth a REQUEST of its own to be given up ahead (this part of the link and more),
// among others that wait for the room.
inline bool may_end(const State& s, const CadenceParams& p) {
  constexpr std::uint32_t kEndPart = 8;
  return s.phase == Phase::granted && s.active_senders > 1 && s.backlog_wire > 0 &&
         s.next_mbps == 0 && s.grant_mbps >= p.link_mbps / kEndPart && !in_start(s);
}
// Bytes that may leave within a round trip, in 1/8000 bytes. A backlog up to this size ends by
// then.
inline std::uint64_t last_round_trip(const State& s, const CadenceParams& p) {
  const std::uint64_t rate = std::min({s.grant_mbps, s.share_mbps, s.path_mbps});
  return rate * static_cast<std::uint64_t>(p.rtt_ns);
}
inline bool at_end(const State& s, const CadenceParams& p) {
  return may_end(s, p) && s.backlog_wire * 8000 <= last_round_trip(s, p);
}

// A REQUEST timer (retry, refresh, probe) is running.
bool timer_runs(const State& s);

// Makes the decision for the engine from the state.
void decide(const State& s, const CadenceParams& p, std::int64_t now, Decision& d);

}  // namespace paceline::cc::cadence
