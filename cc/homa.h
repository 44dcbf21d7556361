// Homa: Montazeri, Li, Alizadeh and Ousterhout, "Homa: A Receiver-Driven Low-Latency Transport
// Protocol Using Network Priorities", SIGCOMM 2018; grants as in the Linux module
// (PlatformLab/HomaModule, homa_grant.c). The first bytes of a message leave at once; the receiver
// grants the rest to the few senders with the least left (SRPT), several at a time, so that its
// link has work when one of them does not send (controlled overcommitment). A small share goes to
// who has waited longest, so that nobody starves.
//
// Implemented: unscheduled bytes, overcommitment, SRPT, the module's window per sender
// (max_incoming / (active + 1)), its share for the oldest. Different here:
//   - One context serves all queue pairs to a peer, a grant is a ceiling on the bytes of the
//     channel, and what is left is the channel's backlog (REQUEST.demand), not one message's. A
//     short message behind a long one to the same peer gains by its unscheduled bytes only; queue
//     pairs of a channel take turns.
//   - Between peers the order is that of backlogs: who has many short messages for a receiver
//     counts as one long.
//   - RPCs, RESEND and BUSY are RoCEv2's and its acknowledgements' business. Who loses data drops
//     its grant and asks anew (grant_channel.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/grant_channel.h"
#include "cc/port_sender.h"

namespace paceline::cc {

struct HomaParams {
  GrantPort port;
  std::uint64_t incoming_bytes = 0;  // most granted and not arrived
  std::uint32_t overcommit = 0;      // senders granted at a time
  double oldest_share = 0;           // of granted bytes, for who waits longest
  std::uint32_t oldest_bytes = 0;    // at a time
  std::int64_t reclaim_ns = 0;
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
    kParams
  };

  using State = GrantChannel;
  using Params = HomaParams;

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision) {
    state.on_event(params.port, event, decision);
  }
  static void fill_request(State& state, const Params& /*params*/, const Event& event,
                           RequestMessage& request) {
    state.fill_request(event, request);
  }
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
