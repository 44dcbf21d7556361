// The receiving half of a plug-in: one per port and class. The host keeps the channels
// (grant_receiver.h). In every round the plug-in sees which sender wants what, and decides which
// sender gets how much. Its answers are brought within bounds, and counted where they were not:
//
//   clamped   more than is wanted or than there is room for, by less than a packet; less than a
//             packet; a next round that is due at once
//   nonsense  senders that are not there; beyond a packet more than is wanted; no bytes, or beyond
//             2^48 (a negative number); more grants than there is room for
//
// Too much of it, a write beyond its memory, rounds that take too long, and granting nothing for
// kSilentRtts while senders wait and nothing is in flight, lead to quarantine (guard.h): from the
// same round on, a plain rule of the host shares the port, which gives every sender an equal part
// of two BDPs. No message waits for it.
//
// Cost: O(senders with something wanted or outstanding) per round. Memory: what the plug-in asks
// for, and 88 bytes per sender.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "cc/grants/grant_receiver.h"
#include "cc/plugin/channel.h"
#include "cc/plugin/fenced_states.h"
#include "cc/plugin/paceline_cc.h"

namespace paceline::cc::plugin {

class PluginReceiver final : public GrantReceiver {
 public:
  // The plug-in outlives it, as does the guard of the params, if there is one.
  PluginReceiver(const Plugin& plugin, const PluginParams& params);

  ChannelCounters* on_request(Nanos now, std::uint32_t peer, const RequestMessage&) override;
  void set_params(const ParamBlock& params) override;
  std::string check_invariants(Nanos now) const override;

  // Round trips without a grant, while a sender waits and nothing is in flight.
  static constexpr std::int64_t kSilentRtts = 16;
  // The plug-in cannot delay a round for longer.
  static constexpr std::int64_t kLongestRtts = 4;

 private:
  void share(std::int64_t now) override;
  std::int64_t share_at() const override { return next_at_; }
  void opened(std::uint32_t peer) override;

  bool left() const { return guard_->quarantined != Offence::none; }
  void quarantine(Offence offence);
  void show(std::uint32_t peer, paceline_cc_sender& view) const;
  void call(std::int64_t now, paceline_cc_round& round);
  void look_after(std::size_t senders);
  void pay(std::int64_t now, const paceline_cc_grant& grant);
  void notice_silence(std::int64_t now);
  void share_plainly(std::int64_t now);

  const Plugin& plugin_;
  PluginParams params_;
  Guard own_guard_;  // where the params have none
  Guard* guard_ = nullptr;
  FencedStates port_state_;
  FencedStates sender_states_;
  std::vector<paceline_cc_sender> views_;           // of this round
  std::vector<const paceline_cc_sender*> senders_;  // the same
  std::array<paceline_cc_grant, PACELINE_CC_GRANTS + 1>
      grants_{};                // the last one must stay as it is
  std::uint64_t used_ = 0;      // of the port, in this round
  std::int64_t next_at_ = 0;    // ns
  std::int64_t round_at_ = 0;   // the last one
  std::int64_t moving_at_ = 0;  // when something was last in flight, or granted
  std::uint32_t turn_ = 0;      // of the plain rule: place in the list after the last grant
};

// Null for a plug-in without a receiving half. Not for the hot path.
std::unique_ptr<DownlinkAllocator> make_receiver(const ParamBlock& block);

}  // namespace paceline::cc::plugin
