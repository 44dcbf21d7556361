// EQDS: all queueing at the sender, which sends only what its receiver has given it credit for
// (Olteanu et al., An edge-queued datagram service for all datacenter traffic, NSDI'22), with the
// values of Ultra Ethernet's receiver-based control, RCCC (uet-htsim, sim/uec.cpp). This is the
// sender's half, one context per peer and class; receiver.h paces the credits, sender.h
// shares the uplink's speculative bytes.
//
// Implemented: the speculative first window; the REQUEST that asks for credit (the paper's RTS) and
// is repeated until answered; credit as a cumulative ceiling, so that no lost GRANT loses credit;
// credit left over from idle times; credit of lost packets; and the end of speculation after a
// loss. Not implemented: the paper's tunnel for TCP and RDMA, which a transport of its own does not
// need; a pull target in each data packet (REQUEST carries it when it has changed, at most twice
// per round trip); several credit rates per peer; path choice by trims, which belongs to the
// transport.
//
// Without trimming, the transport finds losses and reports them as `nack` or `timeout`; a fabric
// that pauses loses nothing. Trimming only makes the loss of speculative packets known sooner.
//
// Bytes are wire bytes, as in cadence.h: a packet may leave when sent_total + its bytes <= ceiling.
// The order of a start and the contract of the fallback are also those of cadence.h. Credit is used
// at line rate. A GRANT of a receiver that runs another proactive algorithm lacks the flag
// `credit`; its ceiling and rate are obeyed.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cc/eqds/params.h"
#include "cc/interface/algorithm.h"
#include "cc/interface/uplink_arbiter.h"

namespace paceline::cc {

class Eqds {
 public:
  using Params = EqdsParams;

  enum class Phase : std::uint8_t {
    idle,      // no backlog
    asking,    // message posted, speculative bytes asked of the arbiter
    pulling,   // backlog; sends as far as its credit reaches
    fallback,  // REQUESTs unanswered: the reactive algorithm decides
  };

  struct State {
    std::uint64_t limit_total;        // L: credit in total, speculative bytes included
    std::uint64_t sent_total;         // as of the last event
    std::uint64_t posted_wire;        // estimate of what is posted and not sent, message by message
    std::uint64_t backlog_wire;       // what follows from it and from the backlog
    std::uint64_t told_final;         // sent_total + demand of the last REQUEST
    std::uint64_t unscheduled_total;  // speculative bytes announced so far
    std::uint64_t checked_total;      // sent_total when progress was looked at
    std::int64_t requested_at;        // last REQUEST, ns
    std::int64_t probe_at;            // when it is repeated, if credit is short
    std::int64_t window_at;           // window_bytes is as of then
    std::uint32_t window_bytes;       // speculative bytes not used up
    std::uint32_t want_bytes;         // asked of the arbiter
    std::uint32_t cap_mbps;           // share of the uplink
    std::uint32_t told_mbps;          // the same, as the receiver knows it
    std::uint32_t paced_mbps;         // of a GRANT without the flag `credit`; 0: line rate
    std::uint32_t probe_ns;           // present interval of unanswered REQUESTs
    std::uint32_t short_bytes;        // by how much the backlog was underestimated
    std::uint16_t seen_seq;           // newest GRANT
    std::uint16_t req_seq;
    Phase phase;
    std::uint8_t probes;  // REQUESTs since the last GRANT
    bool asks_start;      // want_bytes waits for the arbiter's answer
    bool lost;            // credited bytes were lost, and the receiver does not know yet
    bool seq_known;       // seen_seq is valid
  };

  static Params make_params(std::span<const double> values, const PortFacts& facts) {
    return make_eqds_params(values, facts);
  }
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static void fill_request(State& state, const Params& params, const Event& event,
                           RequestMessage& request);
  static UplinkWant uplink_want(const State& state, const Params& params);
  static Rate waiting_rate(const Params& params) { return rate_from_mbps(params.fallback_mbps); }
};

static_assert(std::is_trivially_copyable_v<Eqds::State>);
static_assert(sizeof(Eqds::State) <= kStateBytes);

}  // namespace paceline::cc
