// The uplink of a port that sends by a plug-in with rates (uplink_arbiter.h): the host keeps what
// every context wants, and calls on_uplink when that has changed, as far as the plug-in lets it
// rest. Shares are brought within the link, start bytes within what was asked for.
//
// Cost: O(1) per update, O(active contexts) per round, and a word for each 64 contexts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cc/interface/uplink_arbiter.h"
#include "cc/plugin/call.h"
#include "cc/plugin/fenced_states.h"
#include "cc/plugin/paceline_cc.h"
#include "cc/plugin/rates/numbered_set.h"

namespace paceline::cc::plugin {

class PluginUplink final : public UplinkArbiter {
 public:
  // The plug-in outlives it, as does the guard of the params, if there is one.
  PluginUplink(const paceline_cc_rates& rates, const PluginParams& params);

  void update(Nanos now, std::uint32_t context, const UplinkWant& want) override;
  void forget(Nanos now, std::uint32_t context) override;
  std::size_t poll(Nanos now, std::span<ShareOutput> out) override;
  void set_params(const ParamBlock& params) override;
  Nanos next_wake() const override;
  std::string check_invariants(Nanos now) const override;

  // The plug-in cannot rest for longer.
  static constexpr std::int64_t kLongestRestNs = 1'000'000'000;

 private:
  struct Entry {
    UplinkWant want;
    paceline_cc_want shown{};
    paceline_cc_share share{};
    paceline_cc_uplink_context view{};
    bool asking = false;
  };

  bool left() const { return guard_->quarantined != Offence::none; }
  void grow(std::uint32_t context);
  void reset_share(Entry& entry) const;
  void run_round(std::int64_t now);
  void show(std::uint32_t context);
  void take(std::uint32_t context);

  const paceline_cc_rates& rates_;
  PluginParams params_;
  Guard own_guard_;  // where the params have none
  Guard* guard_ = nullptr;
  FencedStates port_;
  FencedStates states_;
  std::deque<Entry> entries_;                       // by context; they stay where they are
  NumberedSet listed_;                              // active, or asking
  std::vector<paceline_cc_uplink_context*> shown_;  // of this round
  std::vector<std::uint32_t> ready_;                // to be told
  std::size_t ready_head_ = 0;
  std::uint32_t asking_ = 0;
  std::int64_t rest_at_ = 0;
  std::int64_t next_at_ = kNeverNanos.count;
  bool dirty_ = false;
};

// Null for a plug-in that shares no uplink. Not for the hot path.
std::unique_ptr<UplinkArbiter> make_uplink(const ParamBlock& block);

}  // namespace paceline::cc::plugin
