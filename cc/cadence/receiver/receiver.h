// Cadence's allocator of one receiving port and class (downlink_allocator.h): max-min shares of the
// downlink among the channels that have demand, as absolute rates with leases.
//
// Invariants, asserted by check_invariants (docs/algorithms/cadence.md states them exactly):
//   I1 the sum of committed rates stays within the plan: no increase lifts it above the capacity of
//      that moment, and a decrease counts as capacity only when the sender has confirmed it, or its
//      older lease has run out and the sender's own halving has followed.
//   I2 every grant has a ceiling, at most rate * (lease + 2 RTT) + 2 packets beyond what is known
//      to have been sent or announced.
//   I4 every channel with demand is granted a rate, or waits in rotation and knows it.
// (I3, the window, and I5, the decay without a grant, are the sender's: cadence.h.)
//
// Cost: O(active) per allocation, at most one per T_alloc and only when something changed;
// O(active) per scan every 2 RTT; O(1) per REQUEST. Memory: 128 bytes and the counters per channel.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "cc/cadence/params.h"
#include "cc/cadence/receiver/channel_table.h"
#include "cc/cadence/receiver/grant_planner.h"
#include "cc/interface/downlink_allocator.h"

namespace paceline::cc {

class CadenceReceiver final : public DownlinkAllocator {
 public:
  explicit CadenceReceiver(const CadenceParams& params);

  ChannelCounters* on_request(Nanos now, std::uint32_t peer, const RequestMessage&) override;
  void on_unaccounted_bytes(std::uint64_t /*wire_bytes*/) override {}
  void forget(Nanos now, std::uint32_t peer) override;
  std::size_t poll(Nanos now, std::span<ReceiverOutput> out) override;
  Nanos next_wake() const override;
  std::string check_invariants(Nanos now) const override;

  // Rates promised under the old values stand until their decrease is confirmed or they lapse. The
  // invariants allow that much, and no more.
  void set_params(const ParamBlock& params) override;
  void revoke(Nanos now, std::uint32_t peer);  // takes a grant back and says so

  // State of the port now, for telemetry and tests.
  struct Snapshot {
    std::uint64_t committed_mbps = 0;  // sum of com
    std::uint64_t granted_mbps = 0;    // sum of grants in force
    std::uint32_t active = 0;
    std::uint32_t waiting = 0;
    std::uint64_t grants_sent = 0;
    std::uint64_t allocations = 0;
  };
  Snapshot snapshot() const;

 private:
  using Channel = cadence::Channel;
  using Mode = Channel::Mode;

  // Messages.
  void open(std::uint32_t peer, const RequestMessage& r);
  void confirm(Channel& ch, std::uint16_t echo);
  bool repeats(std::int64_t now, const Channel& ch) const;
  void fill_grant(std::int64_t now, std::uint32_t peer, GrantMessage& g);

  // Channels.
  void list(std::int64_t now, std::uint32_t peer);
  void activate(std::int64_t now, std::uint32_t peer);
  void enqueue(std::int64_t now, std::uint32_t peer);
  void release(std::uint32_t peer);
  void decrease(std::uint32_t peer, std::uint32_t mbps);
  std::int64_t lease_of(const Channel& ch) const;

  // Time.
  void retry(std::int64_t at) { retry_at_ = std::min(retry_at_, at); }
  void scan(std::int64_t now);
  void scan_channel(std::int64_t now, std::uint32_t peer);
  void rotate(std::int64_t now);
  void allocate(std::int64_t now);

  CadenceParams params_;
  cadence::ChannelTable table_;
  cadence::GrantPlanner planner_;

  std::int64_t lease_ns_ = 0;
  std::int64_t scan_at_ = kNeverNanos.count;
  std::int64_t alloc_at_ = 0;                  // earliest next allocation
  std::int64_t retry_at_ = kNeverNanos.count;  // allocation wanted although nothing changed
  std::int64_t rotate_at_ = 0;
  bool dirty_ = false;  // something changed: allocation wanted

  std::uint64_t grants_sent_ = 0;
  std::uint64_t allocations_ = 0;

  // The part of earlier values that is still in force.
  std::uint64_t stood_mbps_ = 0;    // committed
  std::uint32_t stood_active_ = 0;  // active
  std::int64_t params_at_ = 0;      // first allocation by the present values...
  bool params_new_ = false;         // ... which is still to come
};

}  // namespace paceline::cc
