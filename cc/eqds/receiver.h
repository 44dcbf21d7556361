// The receiving half of EQDS (downlink_allocator.h): a pacer that pulls. At fixed intervals it
// gives the next sender with demand credit for a few packets, so that credited data arrives a
// little below line rate and a queue, if any, drains (EQDS, NSDI'22; UEC's RCCC, uet-htsim uec.cpp;
// the idea of pulls is NDP's, SIGCOMM'17).
//
// Rules, each with a unit test in tests/unit/cc/eqds_receiver_test.cc:
//   pace     pull_bytes every pull_bytes / (pull_rate C m), m from ECN (below); an idle pacer
//            gathers nothing, a late one makes up for a round trip at most.
//   turns    round robin over senders whose demand is not covered and who hold less than
//            max_credit x (their share of their uplink) of unused credit.
//   start    announced speculative bytes delay the pacer, except those that pass before a pull
//            could take effect; bytes of them that switches trimmed are given back.
//   others   bytes without credit (ACKs, control, other algorithms) delay the pacer, up to
//            foreign_most.
//   total    GRANT.limit_total is a cumulative ceiling: the next GRANT makes up for a lost one, and
//            a GRANT is repeated when a REQUEST shows that its sender does not know it.
//   loss     after a REQUEST with `lost`, all that was sent counts as arrived, so that the
//            credit of lost bytes is given again.
//   wait     a sender whose turn is far off gets a GRANT with `hold`; the lease says when to ask.
//   idle     if no sender waits, recently active senders get credit beyond their demand, up to
//            idle_credit for all together.
//   ECN      UEC's rule for oversubscribed cores: g = (g + F) / 2 every 1.5 T, F the share of
//            packets marked or trimmed; above the target m falls by half of the excess, else it
//            rises by 0.01, doubling while nothing is marked. Not while speculative bytes pass.
//
// Not implemented: several classes of service in the active list; the randomised period of the ECN
// rule. Rules that are not in the papers: `start` and `others` (profile "uec" runs without them).
//
// Cost: O(1) per pull and REQUEST; O(channels) every 1.5 T while senders are pulled. Memory: 160
// bytes per channel.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cc/eqds/params.h"
#include "cc/interface/downlink_allocator.h"

namespace paceline::cc {

class EqdsReceiver final : public DownlinkAllocator {
 public:
  explicit EqdsReceiver(const EqdsParams& params) : params_(params) {}

  ChannelCounters* on_request(Nanos now, std::uint32_t peer, const RequestMessage&) override;
  void on_unaccounted_bytes(std::uint64_t wire_bytes) override { unaccounted_bytes_ += wire_bytes; }
  void on_trimmed_bytes(std::uint64_t wire_bytes) override { trimmed_bytes_ += wire_bytes; }
  void forget(Nanos now, std::uint32_t peer) override;
  std::size_t poll(Nanos now, std::span<ReceiverOutput> out) override;
  Nanos next_wake() const override;
  void set_params(const ParamBlock& params) override;
  std::string check_invariants(Nanos now) const override;

  // State of the port now, for tests.
  struct Snapshot {
    std::uint32_t active = 0;       // senders with demand beyond their credit
    std::int64_t next_pull_ns = 0;  // when the pacer may pull
    std::uint64_t idle_bytes = 0;   // credit given beyond demand
    double pace = 1;                // m
  };
  Snapshot snapshot() const { return {active_count_, clock_, idle_sum_, pace_}; }
  // Credit that a known peer has not used, in wire bytes, as far as this end can see; for tests.
  std::uint64_t unused_credit(std::uint32_t peer) const {
    return channels_[peer].limit_total - used(channels_[peer], peer);
  }

 private:
  static constexpr std::uint32_t kNone = 0xFFFF'FFFF;
  static constexpr std::size_t kCountersPerBlock = 64;

  struct Channel {
    std::uint64_t limit_total = 0;        // L: credit given, speculative bytes included
    std::uint64_t final_total = 0;        // sent_total + demand of the last REQUEST
    std::uint64_t sent_total = 0;         // of the last REQUEST
    std::uint64_t unscheduled_total = 0;  // of the last REQUEST
    std::uint64_t rx_base = 0;            // sent_total less what the counters said then
    std::uint64_t idle_bytes = 0;         // of L, beyond final_total
    std::uint64_t used_seen = 0;          // used() when its turn was last looked at
    std::int64_t req_at = 0;              // last REQUEST
    std::int64_t granted_at = 0;          // last GRANT
    std::int64_t moved_at = 0;            // last REQUEST, or arrival that was noticed
    std::uint32_t req_stamp = 0;
    std::uint32_t cap_mbps = 0;
    std::uint32_t next = kNone;  // ring of active channels
    std::uint32_t prev = kNone;
    std::uint32_t last_packets = 0;  // counters at the last look of the ECN rule
    std::uint32_t last_ce = 0;
    std::uint64_t last_trimmed = 0;
    std::uint16_t channel = 0;
    std::uint16_t req_seq = 0;
    std::uint16_t seq = 0;  // of the newest GRANT; 0 is never sent
    bool known = false;
    bool active = false;
    bool idle = false;  // in idle_
    bool due = false;   // in due_
  };

  ChannelCounters& counters(std::uint32_t peer) const {
    return (*counter_blocks_[peer / kCountersPerBlock])[peer % kCountersPerBlock];
  }
  void grow(std::uint32_t peer);
  void open(Channel& ch, std::uint32_t peer, const RequestMessage& r);
  void close(std::uint32_t peer);
  std::uint64_t used(const Channel& ch, std::uint32_t peer) const;
  void set_idle_bytes(Channel& ch);
  void activate(std::int64_t now, std::uint32_t peer);
  void deactivate(std::uint32_t peer);
  void offer_idle(std::uint32_t peer);
  void schedule(std::uint32_t peer);

  std::int64_t link_ns(std::uint64_t bytes) const;
  void take_off(std::uint64_t bytes);
  void charge_start(std::int64_t now, std::uint64_t bytes);
  void account(std::int64_t now);
  void heed_marks(std::int64_t now);
  std::int64_t wait_ns(std::int64_t now) const;
  bool may_pull(std::int64_t now, Channel& ch, std::uint32_t peer);
  std::uint32_t next_to_pull(std::int64_t now);
  void pull(std::uint32_t peer);
  bool serve_idle();
  void fill(std::int64_t now, std::uint32_t peer, ReceiverOutput& out);

  EqdsParams params_;
  std::vector<Channel> channels_;  // by peer
  std::vector<std::unique_ptr<std::array<ChannelCounters, kCountersPerBlock>>> counter_blocks_;
  std::vector<std::uint32_t> due_;   // GRANTs without a pull: told to wait, or repeated
  std::vector<std::uint32_t> idle_;  // candidates for idle credit, in order
  std::uint32_t turn_ = kNone;       // next in the ring
  std::uint32_t active_count_ = 0;
  std::uint64_t idle_sum_ = 0;
  std::int64_t clock_ = -(std::int64_t{1} << 40);  // the pacer: the next pull not before this
  std::uint64_t clock_rest_ = 0;  // of the last pull, less than a nanosecond at the pace
  std::int64_t polled_at_ = 0;
  std::uint64_t unaccounted_bytes_ = 0;  // since the last poll
  std::uint64_t trimmed_bytes_ = 0;
  double pace_ = 1;    // m
  double marked_ = 0;  // g
  std::uint32_t calm_ = 0;
  std::int64_t marks_at_ = 0;     // next look of the ECN rule
  std::int64_t start_until_ = 0;  // speculative bytes pass until then
};

}  // namespace paceline::cc
