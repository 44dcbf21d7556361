// Cadence's allocator of one receiving port and class (port_receiver.h): max-min shares of the
// downlink among the channels that have demand, as absolute rates with leases.
//
// Invariants, asserted by check_invariants (docs/algorithms/cadence.md states them exactly):
//   I1 the sum of committed rates stays within the plan: no increase lifts it above the capacity of
//      that moment, and a decrease counts as capacity only when the sender has confirmed it, or its
//      older lease has run out and the sender's own halving has followed.
//   I2 every grant has a ceiling, at most rate * (lease + 2 RTT) + 2 packets beyond what is known
//      to have been sent.
//   I3 unscheduled bytes are a debt (virtual queue) that shrinks the capacity until it is paid.
//   I4 every channel with demand is granted at least R_min, or waits in rotation and knows it.
// (I5, the decay without a grant, is the sender's: cadence.h.)
//
// Cost: O(active log active) per allocation, at most one per T_alloc and only when something
// changed; O(active) per scan every 2 RTT; O(1) per REQUEST. Memory: one 128-byte line per channel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cc/cadence_params.h"
#include "cc/port_receiver.h"

namespace paceline::cc {

class CadenceReceiver final : public PortReceiver {
 public:
  explicit CadenceReceiver(const CadenceParams& params);

  ChannelCounters* on_request(Nanos now, std::uint32_t peer, const RequestMessage&) override;
  void on_foreign_bytes(std::uint64_t wire_bytes) override { foreign_bytes_ += wire_bytes; }
  void forget(Nanos now, std::uint32_t peer) override;
  std::size_t poll(Nanos now, std::span<ReceiverOutput> out) override;
  Nanos next_wake() const override;
  void set_drain_limit(Nanos now, Rate limit) override;
  std::string check_invariants(Nanos now) const override;

  void set_params(const CadenceParams& params);
  void set_weight(std::uint32_t peer, std::uint8_t weight);  // policy; 1..255, default 16
  void revoke(Nanos now, std::uint32_t peer);                // takes a grant back and says so

  // What the port looks like now: telemetry and tests.
  struct Snapshot {
    std::uint64_t committed_mbps = 0;  // sum of com
    std::uint64_t granted_mbps = 0;    // sum of grants in force
    std::uint64_t capacity_mbps = 0;   // of the last allocation, debt deducted
    std::uint64_t foreign_mbps = 0;    // X
    std::uint64_t virtual_queue_bytes = 0;
    std::uint32_t active = 0;
    std::uint32_t waiting = 0;
    std::uint32_t start_budget_bytes = 0;  // U_adv
    std::uint64_t grants_sent = 0;
    std::uint64_t allocations = 0;
    bool slow_receiver = false;  // the drain limit binds
  };
  Snapshot snapshot() const;

 private:
  struct Channel;
  struct Impl;
  std::unique_ptr<Impl> impl_;
  std::uint64_t foreign_bytes_ = 0;
};

}  // namespace paceline::cc
