// SIRD: Prasopoulos, Kosta, Bugnion and Kogias, "SIRD: A Sender-Informed, Receiver-Driven
// Datacenter Transport Protocol", NSDI 2025 (arXiv 2312.15403); laws and values compared with the
// authors' simulator (epfl-dcsl, r2p2-cc-hybrid). Receivers hand out credit for bytes. What is
// outstanding at a receiver stays within its bucket B, at each sender within SB = min(SBsender,
// SBnet). Two loops, both as DCTCP's, move these: the sender's bit csn (more credit has piled up
// than SThr) and CE marks of the data.
//
// Implemented: both buckets and loops, credit paced below line rate, round robin or smallest
// remaining demand first among senders, unscheduled bytes of messages up to UnschT, reclaim of
// credit that is lost. Different here:
//   - Credit is a ceiling on all bytes of a channel (GRANT.limit_total), not a count per packet: a
//     lost or repeated GRANT neither loses nor makes credit.
//   - One context serves all queue pairs to a peer: remaining demand is the channel's, not a
//     message's, and SBs bound channels.
//   - REQUESTs carry csn, at most once per round trip: RoCEv2 data packets have no room for it. A
//     value holds until the next REQUEST. The uplink arbiter (sender.h) compares with SThr.
//   - The uplink is shared equally among channels with credit; the paper gives half of it by
//     smallest remaining.
//   - A sender that loses data drops its credit and asks again (grant_channel.h).
// Not implemented: two priority levels in the network (the paper's option), spraying per packet.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/grants/grant_channel.h"
#include "cc/interface/uplink_arbiter.h"

namespace paceline::cc {

struct SirdParams {
  GrantPort port;
  std::uint32_t bucket_bytes = 0;         // B
  std::uint32_t sender_bucket_bytes = 0;  // most of SB
  std::uint32_t least_bucket_bytes = 0;   // least of SB
  std::uint32_t threshold_bytes = 0;      // SThr
  std::uint32_t unit_bytes = 0;           // of a GRANT
  double gain = 0;                        // g of both loops
  double credit_rate = 0;                 // of the link
  std::int64_t reclaim_ns = 0;
  bool smallest_first = false;
};

class Sird {
 public:
  enum Param : std::size_t {
    kBucket,
    kSenderBucket,
    kLeastBucket,
    kThreshold,
    kUnscheduled,
    kGain,
    kCreditRate,
    kUnit,
    kSmallestFirst,
    kReclaim,
    kProbeLimit,
    kProbeMax,
    kParams
  };

  using State = GrantChannel;
  using Params = SirdParams;

  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static void fill_request(State& state, const Params& /*params*/, const Event& event,
                           RequestMessage& request) {
    state.fill_request(event, request);
  }
  static UplinkWant uplink_want(const State& state, const Params& params);
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
