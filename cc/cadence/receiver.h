// Cadence's allocator of one receiving port and class (port_receiver.h): max-min shares of the
// downlink among the channels that have demand, as absolute rates with leases.
//
// Invariants, asserted by check_invariants (docs/algorithms/cadence.md states them exactly):
//   I1 the sum of committed rates stays within the plan: no increase lifts it above the capacity of
//      that moment, and a decrease counts as capacity only when the sender has confirmed it, or its
//      older lease has run out and the sender's own halving has followed.
//   I2 every grant has a ceiling, at most rate * (lease + 2 RTT) + 2 packets beyond what is known
//      to have been sent or announced.
//   I3 unscheduled bytes are a debt (virtual queue) that shrinks the capacity until it is paid.
//   I4 every channel with demand is granted a rate, or waits in rotation and knows it.
// (I5, the decay without a grant, is the sender's: cadence.h.)
//
// Cost: O(active) per allocation, at most one per T_alloc and only when something changed;
// O(active) per scan every 2 RTT; O(1) per REQUEST. Memory: 128 bytes and the counters per channel.
// Code: receiver.cc (messages in and out), scan.cc (what time does),
// allocate.cc (shares and grants), check.cc (invariants).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/grants/water_fill.h"
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
  std::string check_invariants(Nanos now) const override;

  void set_params(const ParamBlock& params) override;
  // What was promised under the old values stands until it is confirmed to be less, or lapses: the
  // invariants allow it, and no more.
  void set_params(const CadenceParams& params);
  void revoke(Nanos now, std::uint32_t peer);  // takes a grant back and says so

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
    std::uint64_t paths_sent = 0;
    std::uint64_t allocations = 0;
    std::uint32_t eta_cut_q6 = 0;  // taken off the plan because a queue stood, in 1/64 of the link
  };
  Snapshot snapshot() const;

 private:
  enum class Mode : std::uint8_t { unknown, idle, active, waiting };

  struct alignas(64) Channel {
    // What an allocation reads and writes: one line.
    std::uint64_t final_total = 0;   // sent_total + demand of the last REQUEST
    std::uint64_t rx_base = 0;       // sent_total minus counters when the channel appeared
    std::int64_t sent_at = 0;        // last GRANT
    std::int64_t lease_end = 0;      // of the newest GRANT, one RTT of travel included
    std::int64_t old_lease_end = 0;  // of the newest GRANT above the present one; halvings move it
    std::uint32_t grant = 0;         // Mb/s, as last sent
    std::uint32_t com = 0;           // Mb/s the sender may believe to have
    std::uint32_t tx_cap = 0;
    std::uint32_t position = 0;  // in listed_, plus 1
    std::uint16_t seq = 0;       // of the newest grant; 0 is never sent
    std::uint16_t echo = 0;
    Mode mode = Mode::unknown;
    std::uint8_t start_window = 0;  // window in which its last start was counted
    bool due : 1 = false;           // a GRANT is in due_
    bool midway : 1 = false;        // traffic of another algorithm came in with it
    bool later : 1 = false;  // its newest decrease takes effect an RTT after its sender knows

    std::int64_t req_at = 0;       // last REQUEST
    std::uint64_t sent_known = 0;  // sent or announced as unscheduled
    std::uint64_t unscheduled_total = 0;
    std::uint64_t limit_total = 0;  // highest ceiling sent
    std::uint32_t req_stamp = 0;    // timestamp of the last REQUEST
    std::uint32_t last_rx = 0;      // counters at the last scan, low bits
    std::uint32_t heard_us = 0;     // last REQUEST, or scan that found data
    std::uint32_t path_us = 0;      // last quick-adapt
    std::uint32_t turn_us = 0;      // since when active or waiting
    std::uint16_t req_seq = 0;
    std::uint16_t channel = 0;
    std::uint16_t path_seq = 0;
    std::uint16_t alpha_q16 = 0;
    std::uint16_t last_packets = 0;  // like last_rx
    std::uint16_t last_ce = 0;
  };
  static_assert(sizeof(Channel) == 128 && std::is_trivially_copyable_v<Channel>);

  struct Due {
    enum class Kind : std::uint8_t { grant, revoke, alpha, quick } kind = Kind::grant;
    std::uint32_t peer = 0;
    std::uint32_t value = 0;  // grant: effective delay in us; alpha in 1/65536; quick in Mb/s
  };
  // The active channels of an allocation, by peer. Columns: most passes read two or three of them,
  // one slot after the other.
  struct Slots {
    void grow(std::size_t channels);
    std::size_t size = 0;  // in use
    std::vector<std::uint32_t> peer;
    std::vector<std::uint32_t> limit;
    std::vector<std::uint32_t> share;
    std::vector<std::uint32_t> grant;  // the channel's, kept in step while an allocation runs
    std::vector<std::uint32_t> com;    // likewise
    std::vector<std::uint8_t> weight;
    std::vector<std::uint64_t> left;  // bytes
  };
  struct Marked {
    std::uint32_t peer = 0;
    std::uint32_t q16 = 0;   // marked share of packets
    std::uint32_t mbps = 0;  // arrival rate
  };
  static constexpr std::size_t kCountersPerBlock = 64;

  // Messages (receiver.cc).
  ChannelCounters& counters(std::uint32_t peer) const;
  void open(std::int64_t now, Channel& ch, std::uint32_t peer, const RequestMessage& r);
  void forget_uncharged(Channel& ch, std::uint32_t peer, std::uint64_t sent);
  void charge(std::int64_t now, Channel& ch, std::uint64_t bytes);
  void confirm(std::int64_t now, Channel& ch, std::uint16_t echo);
  bool repeats(std::int64_t now, const Channel& ch) const;
  void schedule_grant(std::uint32_t peer, std::uint32_t delay_us = 0);
  void fill_grant(std::int64_t now, Channel& ch, std::uint32_t peer, bool revoked, GrantMessage& g);
  std::uint64_t known_sent(const Channel& ch, std::uint32_t peer) const;

  std::int64_t credit_speed() const;
  void earn_credit(std::int64_t now);
  std::int64_t may_allocate_at() const;

  // Lists of channels.
  void list(std::int64_t now, std::uint32_t peer);
  void unlist(std::uint32_t peer);
  void activate(std::int64_t now, std::uint32_t peer);
  void enqueue(std::int64_t now, std::uint32_t peer);
  void release(std::uint32_t peer);
  void release_ahead(std::int64_t now, Channel& ch);
  void set_com(Channel& ch, std::uint32_t mbps);
  void set_grant(Channel& ch, std::uint32_t mbps);
  void set_mode(std::uint32_t peer, Mode mode);

  // Time (scan.cc).
  void scan(std::int64_t now);
  bool scan_channel(std::int64_t now, std::uint32_t peer, std::int64_t span);
  void watch_standing_queue(std::int64_t now, std::uint64_t bytes);
  void attribute_path(std::int64_t now, const Marked& marked);
  void advance_debt(std::int64_t now);
  void pay_debt(std::int64_t span);
  void add_debt(std::int64_t now, std::uint64_t bytes);
  std::uint64_t owed_since(std::int64_t since) const;
  void forget_paid(std::int64_t now);
  std::uint64_t bytes_before_fresh(std::int64_t now) const;
  void advance_windows(std::int64_t now);
  std::int64_t lease_of(const Channel& ch) const;
  std::uint32_t start_budget() const;

  // Allocation (allocate.cc).
  void allocate(std::int64_t now);
  std::uint64_t plan() const;  // plan_mbps, less what a standing queue took off
  std::uint64_t plan_capacity(std::int64_t now);
  void fill_active(std::int64_t now);
  void rotate(std::int64_t now);
  std::uint64_t collect_slots();
  void lend_idle(std::uint64_t idle);
  void share_out(std::uint64_t capacity);
  std::span<const std::uint32_t> above() const { return {above_.data(), above_count_}; }
  std::span<const std::uint32_t> below() const { return {below_.data(), below_count_}; }
  template <class Passes>
  std::span<const std::uint32_t> select(std::span<const std::uint32_t> from, Passes&& passes);
  void fetch_channel(std::span<const std::uint32_t> slots, std::size_t place) const;
  void lift(std::int64_t now, std::uint32_t at, std::uint64_t capacity, std::uint64_t& room,
            std::uint32_t delay_us);
  void lower(std::int64_t now, std::uint64_t capacity);
  void raise(std::int64_t now, std::uint64_t capacity);
  void decrease(std::int64_t now, std::uint32_t peer, std::uint32_t mbps, bool later = false);
  bool worth_raising(std::uint64_t share, std::uint32_t grant) const;

  CadenceParams params_;
  std::vector<Channel> channels_;  // by peer
  std::vector<std::unique_ptr<std::array<ChannelCounters, kCountersPerBlock>>> counter_blocks_;
  std::vector<std::uint32_t> listed_;   // active, or with committed rate left
  std::vector<std::uint32_t> waiting_;  // ring of peers in order of arrival; stale ones skipped
  std::size_t waiting_head_ = 0;
  std::vector<Due> due_;
  std::size_t due_head_ = 0;
  std::vector<std::uint64_t> active_;  // a bit by peer: Mode::active
  Slots slots_;                        // scratch of an allocation
  WaterFill fill_;
  std::vector<std::uint32_t> above_;     // slots with a grant above their share; then room
  std::vector<std::uint32_t> below_;     // likewise
  std::vector<std::uint32_t> selected_;  // of either, as select() left it
  std::size_t above_count_ = 0;
  std::size_t below_count_ = 0;
  std::vector<Marked> marked_;  // scratch of a scan
  std::uint32_t active_count_ = 0;
  std::uint32_t waiting_count_ = 0;

  std::uint64_t com_sum_ = 0;
  std::uint64_t grant_sum_ = 0;
  std::uint64_t capacity_ = 0;
  std::uint64_t debt_bytes_ = 0;  // virtual queue
  std::int64_t debt_at_ = 0;
  std::uint64_t debt_bits_left_ = 0;  // remainder of the drain, so that it does not round away
  std::int64_t charged_at_ = 0;
  std::array<std::uint64_t, 16> owed_{};  // what came into the debt, by quarters of an RTT
  std::int64_t owed_quarter_ = 0;         // the newest of them
  std::int64_t measured_at_ = 0;          // arrivals were last counted for it...
  std::uint64_t measured_bytes_ = 0;      // ... and this was their total
  // Increases of the last RTT, by quarters: committed, but not on the wire here yet. Less what is
  // committed to nobody any more and still comes as long.
  std::array<std::int64_t, 4> fresh_mbps_{};
  std::size_t fresh_slot_ = 0;
  std::int64_t fresh_at_ = 0;        // when the present quarter began
  std::uint64_t foreign_bytes_ = 0;  // since the last scan
  std::uint64_t foreign_mbps_ = 0;   // X
  // Arrivals so far: what the counters of listed channels show, and this (modulo 2^64).
  std::uint64_t other_bytes_ = 0;
  std::uint32_t util_q8_ = 0;  // port utilisation of the last two scans, 256 = full
  std::uint32_t last_util_q8_ = 0;
  std::uint64_t long_bytes_ = 0;  // arrivals since long_at_, for the standing-queue loop
  std::int64_t long_at_ = 0;
  bool long_marked_ = false;   // some of them were marked
  std::uint32_t eta_cut_ = 0;  // taken off the plan, in 1/64 of the link
  std::int64_t scanned_at_ = 0;
  std::int64_t scan_at_ = kNeverNanos.count;
  std::int64_t alloc_at_ = 0;                  // earliest next allocation, but for credit
  std::int64_t retry_at_ = kNeverNanos.count;  // allocation wanted although nothing changed
  std::int64_t credit_ns_ = 0;                 // GRANTs: a token bucket in time; may go negative
  std::int64_t credit_at_ = 0;
  std::int64_t lease_ns_ = 0;
  std::int64_t rotate_at_ = 0;
  std::int64_t topped_at_ = 0;     // last time idle capacity was handed out
  std::int64_t window_at_ = 0;     // start of the present start window
  std::uint32_t starts_now_ = 0;   // channels that started in it, and in the one before
  std::uint32_t starts_both_ = 0;  // channels that are counted in both
  std::uint32_t starts_before_ = 0;
  std::uint8_t window_ = 1;
  bool dirty_ = false;

  std::uint64_t grants_sent_ = 0;
  std::uint64_t paths_sent_ = 0;
  std::uint64_t allocations_ = 0;
  std::uint64_t worst_raise_ = 0;  // largest excess of sum com over capacity after an increase

  // Of earlier values, as far as it still stands.
  std::uint64_t stood_mbps_ = 0;    // committed
  std::uint32_t stood_active_ = 0;  // active
  std::int64_t params_at_ = 0;      // first allocation by the present values...
  bool params_new_ = false;         // ... which is still to come
};

}  // namespace paceline::cc
