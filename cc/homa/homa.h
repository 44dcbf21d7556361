// Homa: Montazeri, Li, Alizadeh and Ousterhout, "Homa: A Receiver-Driven Low-Latency Transport
// Protocol Using Network Priorities", SIGCOMM 2018; grants as in the Linux module
// (PlatformLab/HomaModule, homa_grant.c). The first bytes of a message leave at once; the receiver
// grants the rest to the few senders with the least left (SRPT), several at a time, so that its
// link has work when one of them does not send (controlled overcommitment). A small share goes to
// the sender that has waited longest, so that none starves.
//
// Implemented: unscheduled bytes, overcommitment, SRPT, the module's window per sender
// (max_incoming / (active + 1)), its share for the oldest. Different here:
//   - One context serves all queue pairs to a peer, a grant is a ceiling on the bytes of the
//     channel, and what is left is the channel's backlog (REQUEST.demand), not one message's. A
//     short message behind a long one to the same peer gains by its unscheduled bytes only; queue
//     pairs of a channel take turns.
//   - Peers are ordered by backlog: many short messages of a sender count as one long message.
//   - Priorities in the network are off unless `priorities` says how many (HomaPriorities below): a
//     receiver cannot see whether switches honour them, and often one class alone is lossless.
//   - RoCEv2 and its acknowledgements take the place of RPCs, RESEND and BUSY. A sender that loses
//     data drops its grant and asks again (grant_channel.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/grants/grant_channel.h"
#include "cc/interface/uplink_arbiter.h"
#include "dataplane/base/units.h"

namespace paceline::cc {

// Which traffic class a packet takes: levels 0 to levels - 1 are the classes below that of control
// packets, the highest level next to it (SIGCOMM 2018, 3.4). Bytes that may leave without a grant
// have the upper levels, by the length of their message: the shorter the higher. Granted bytes have
// the lower ones, as the receiver's GRANT says.
struct HomaPriorities {
  static constexpr std::uint8_t kMost = kControlClass;  // levels: all classes but that of control
  static constexpr std::size_t kCutoffs = 3;

  std::uint8_t levels = 0;       // 0: off
  std::uint8_t unscheduled = 0;  // levels for bytes without a grant; fewer than levels
  std::array<std::uint64_t, kCutoffs> cutoffs{};  // the highest takes messages up to the first
  std::uint64_t prefix_bytes = 0;  // of a message's payload, may leave without a grant

  std::uint8_t scheduled() const { return static_cast<std::uint8_t>(levels - unscheduled); }
  std::uint8_t class_of(unsigned level) const {
    return static_cast<std::uint8_t>(kControlClass - levels + level);
  }
  // Level of granted bytes for the sender with this rank (0: the least left) among those that are
  // granted at a time. The lowest levels are used, so that a new sender with less left finds a
  // higher level free and need not wait for data in flight. Ranks beyond the levels share the
  // lowest.
  unsigned level_of(std::size_t rank, std::size_t active) const {
    const std::size_t used = std::min<std::size_t>(active, scheduled());
    return rank + 1 < used ? static_cast<unsigned>(used - 1 - rank) : 0;
  }
  // Level of bytes without a grant. Requires unscheduled > 0.
  unsigned level_of(std::uint64_t message_bytes) const {
    unsigned below = 0;
    while (below + 1 < unscheduled && message_bytes > cutoffs[below]) ++below;
    return levels - 1U - below;
  }
};

struct HomaParams {
  GrantPort port;
  std::uint64_t incoming_bytes = 0;  // most granted and not arrived
  std::uint32_t overcommit = 0;      // senders granted at a time
  double oldest_share = 0;           // of granted bytes, for the sender that waits longest
  std::uint32_t oldest_bytes = 0;    // at a time
  std::int64_t reclaim_ns = 0;
  HomaPriorities priorities;
};

class Homa {
 public:
  enum Param : std::size_t {
    kUnscheduled,
    kMaxIncoming,
    kOvercommit,
    kOldestShare,
    kOldestGrant,
    kReclaim,
    kProbeLimit,
    kProbeMax,
    kPriorities,
    kUnscheduledLevels,
    kCutoff1,
    kCutoff2,
    kCutoff3,
    kParams
  };

  using State = GrantChannel;
  using Params = HomaParams;

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision) {
    state.on_event(params.port, event, decision);
    decision.classed = params.priorities.levels;
  }
  static std::uint8_t packet_class(const State& state, const Params& params,
                                   std::uint64_t message_bytes, std::uint64_t offset);
  static void fill_request(State& state, const Params& /*params*/, const Event& event,
                           RequestMessage& request) {
    state.fill_request(event, request);
  }
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
