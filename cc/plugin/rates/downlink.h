// The receiving port under a plug-in with rates (downlink_allocator.h). The host reads REQUESTs,
// drops repeated and late ones, counts arriving data in the sender's terms, and asks the plug-in
// for the answer. It brings the fields of a grant within bounds, and counts those that were not:
//
//   clamped   a rate beyond the link; a next round that is due at once
//   nonsense  a rate beyond 16 times the link, or with a hold; a lease of nothing with a rate, or
//             beyond 10 s; a ceiling that no rate reaches; number 0; undefined flags
//
// Too much nonsense, a write beyond a state, slow calls, and silence towards a sender with demand
// (no grant, no hold, for kSilentRtts and twice its lease) lead to quarantine (guard.h). From then
// on the host grants every sender with demand an equal part of 0.9 of the link, for a lease of
// 1 ms, and continues the plug-in's grant numbers.
//
// Cost: O(1) per REQUEST and grant, O(listed senders) per round, and a word for each 64 senders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cc/interface/downlink_allocator.h"
#include "cc/plugin/call.h"
#include "cc/plugin/fenced_states.h"
#include "cc/plugin/paceline_cc.h"
#include "cc/plugin/rates/numbered_set.h"

namespace paceline::cc::plugin {

class PluginDownlink final : public DownlinkAllocator {
 public:
  // The plug-in, and the guard of `params` if there is one, outlive this.
  PluginDownlink(const paceline_cc_rates& rates, const PluginParams& params);

  ChannelCounters* on_request(Nanos now, std::uint32_t peer, const RequestMessage&) override;
  // As in cadence: the algorithm's own margin leaves capacity for these bytes.
  void on_unaccounted_bytes(std::uint64_t /*wire_bytes*/) override {}
  void forget(Nanos now, std::uint32_t peer) override;
  std::size_t poll(Nanos now, std::span<ReceiverOutput> out) override;
  Nanos next_wake() const override;
  void set_params(const ParamBlock& params) override;
  std::string check_invariants(Nanos now) const override;

  static constexpr std::int64_t kSilentRtts = 16;

 private:
  struct Sender {
    paceline_cc_channel view{};
    paceline_cc_request request{};
    ChannelCounters counters{};
    std::int64_t req_at = 0;
    std::int64_t asked_at = kNeverNanos.count;  // since when it waits for a grant, or a hold
    std::int64_t moved_at = 0;                  // when its data was last seen
    std::uint64_t seen_rx = 0;                  // bytes received by then
    std::uint64_t rx_base = 0;     // sent_total minus counters, when the channel appeared
    std::uint64_t sent_known = 0;  // sent or announced
    std::uint32_t packets_base = 0;
    std::uint32_t marks_base = 0;
    std::uint32_t lease_us = 0;  // of the last grant
    std::uint16_t req_seq = 0;
    std::uint16_t channel = 0;
    std::uint16_t number = 0;  // of the last grant
    bool known = false;
    bool due = false;  // a grant leaves at the next poll
  };

  bool left() const { return guard_->quarantined != Offence::none; }
  void quarantine(Offence offence);
  void grow(std::uint32_t peer);
  void open(std::uint32_t peer, const RequestMessage& r);
  void read(Sender& s, const RequestMessage& r);
  void list(std::uint32_t peer, bool in);
  void push(std::uint32_t peer);
  std::int64_t silence_of(const Sender& s) const;
  void ask_and_watch(std::int64_t now, Sender& s, std::int64_t heard_before);
  void look_for_silence(std::int64_t now);

  static std::int64_t heard_at(std::int64_t now, Sender& s);
  void show(std::int64_t now, std::uint32_t peer);
  paceline_cc_downlink port_at(std::int64_t now);
  void set_next(std::int64_t now, std::int64_t before, std::int64_t said);
  void call_request(std::int64_t now, std::uint32_t peer);
  void call_round(std::int64_t now);
  paceline_cc_rate_grant call_grant(std::int64_t now, std::uint32_t peer);
  void mend(const Sender& s, paceline_cc_rate_grant& g);
  paceline_cc_rate_grant plain_grant(const Sender& s) const;
  void share_plainly(std::int64_t now);
  void write(std::int64_t now, std::uint32_t peer, ReceiverOutput& out);

  const paceline_cc_rates& rates_;
  PluginParams params_;
  Guard own_guard_;  // used if the params have none
  Guard* guard_ = nullptr;
  FencedStates port_;
  FencedStates states_;
  std::deque<Sender> senders_;  // by peer; a deque, so that they do not move
  NumberedSet listed_;
  std::vector<paceline_cc_channel*> shown_;  // of this round
  std::vector<std::uint32_t> due_;           // whose grants leave next
  std::size_t due_head_ = 0;
  std::uint32_t gone_ = 0;  // listed senders that left since the last round
  std::int64_t next_at_ = kNeverNanos.count;
  std::int64_t watch_at_ = kNeverNanos.count;
  bool plain_ = false;            // the plain rule has begun
  std::int64_t plain_at_ = 0;     // next round of the plain rule
  std::int64_t plain_last_ = 0;   // its last one
  std::uint32_t plain_mbps_ = 0;  // of each sender with demand
};

// Null for a plug-in without rates. Not for the hot path.
std::unique_ptr<DownlinkAllocator> make_downlink(const ParamBlock& block);

}  // namespace paceline::cc::plugin
