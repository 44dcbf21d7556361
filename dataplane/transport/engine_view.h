// A look into an engine: what telemetry reads and what tests check. It changes nothing. Only the
// engine's thread may use it, between two calls of the engine.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "cc/plugin/guard.h"
#include "dataplane/telemetry/segment.h"
#include "dataplane/transport/core/cc_setup.h"
#include "dataplane/transport/core/context_sums.h"
#include "dataplane/transport/core/engine_core.h"

namespace paceline::transport {

class CongestionSetups;
class GrantExchange;
class Migration;
class PluginWatch;

class EngineView {
 public:
  EngineView(const EngineCore& core, const CongestionSetups& setups, const Migration& migration,
             const GrantExchange& grants, const PluginWatch& plugins)
      : core_(core), setups_(setups), migration_(migration), grants_(grants), plugins_(plugins) {}

  // Adds up over congestion contexts, piece by piece: `count` of them from `first` on, 0 at the
  // beginning of a round. Returns where to continue; 0: that was the last piece.
  std::uint32_t add_contexts(Picos now, std::uint32_t first, std::uint32_t count,
                             ContextSums& sums) const;
  QpState state_of(std::uint32_t qp_number) const;
  // The cluster to which a queue pair, or for UD an address handle, sends; kNoCluster: none.
  std::uint8_t cluster_of(std::uint32_t qp_number, std::uint32_t address_handle) const;
  // Data packets that went to the cluster, for the first time and again, since clusters were first
  // set.
  std::uint64_t sent_to(std::size_t cluster) const;
  std::uint64_t retransmitted_to(std::size_t cluster) const;
  // Requests in its send queue that are not complete; 0 when there is no such queue pair.
  std::uint32_t queued_sends(std::uint32_t qp_number) const;
  // Wire bytes in flight over all queue pairs; 0 when everything is acknowledged.
  std::uint64_t inflight_bytes() const;
  // Time shares per limiter up to `now`, summed over all contexts that were ever in use.
  std::array<std::int64_t, cc::kLimiters> limiter_picos(Picos now) const;
  // The same for the context that a queue pair uses; all 0 when there is no such queue pair.
  std::array<std::int64_t, cc::kLimiters> limiter_picos(Picos now, std::uint32_t qp_number) const;
  // The queue pair after `number` in the order of slots. `number` 0 gives the first, and the result
  // 0 follows the last. `number` may be that of a destroyed queue pair.
  std::uint32_t next_qp(std::uint32_t number) const;
  // Fills everything but sequence, user and pid. False, and nothing filled, when there is no such
  // queue pair. Does not allocate; the cost grows with the messages that the queue pair has in
  // flight.
  bool describe_qp(Picos now, std::uint32_t number, telemetry::QueuePairRecord& record) const;
  struct Population {
    std::uint32_t queue_pairs = 0;
    std::uint32_t contexts = 0;     // in use
    std::uint32_t on_fallback = 0;  // contexts among them that are proactive and without a grant
    // Contexts that are reactive, because the peer speaks nothing else.
    std::uint32_t foreign = 0;
    std::uint32_t peers = 0;  // that some queue pair or address handle names
  };
  // Visits all contexts.
  Population population() const;
  // With two arms at a time: the setup of the port's own cluster.
  const CcSetup& setup() const;
  // 1 at the start, then one more with each reconfigure.
  std::uint64_t generation() const;
  // Some contexts have not been told of the newest setup yet.
  bool reconfiguring() const;
  // Why a plug-in is no longer called here; `none`: it is called, or never was.
  cc::plugin::Offence quarantined(cc::AlgorithmId id) const;
  const HostStops& host_stops() const { return core_.stops; }
  const ArrivalStamps& arrival_stamps() const { return core_.stamps; }
  // The first violated invariant of the algorithms (EngineConfig::check_invariants).
  const std::string& violation() const;
  // Conservation: contexts agree with their queue pairs, no context is lost, and each packet that
  // arrived is accounted for. Empty when all of this holds.
  std::string check_conservation() const;
  // Packets that queue pairs keep until an earlier one arrives or memory answers. Queue pairs in
  // error do not count: they keep none for an earlier one.
  std::uint64_t held_packets() const;

 private:
  std::string check_arrivals() const;

  const EngineCore& core_;
  const CongestionSetups& setups_;
  const Migration& migration_;
  const GrantExchange& grants_;
  const PluginWatch& plugins_;
};

}  // namespace paceline::transport
