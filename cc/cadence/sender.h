// Cadence's uplink arbiter (uplink_arbiter.h): max-min shares of the transmit rate among the active
// contexts, limited by what they are granted, and the bytes that may leave without a grant.
//
// Shares: T_i = min(w_i * level, limit_i), sum T <= C. The cap told to a receiver is the share the
// context would have if that receiver's grant were unlimited and all others stayed as they are:
// the exchange (cap up, grant down) is distributed max-min in the manner of explicit-rate ATM
// (Charny, Clark, Jain: "Congestion control with explicit rate indication", ICC 1995), with the
// exact water level instead of their advertised rate. Contexts that wait for their first grant
// count as unlimited.
// Classes: the scheduler sends higher traffic classes first, so they share first; the next class
// shares what they leave, at least 1/64 of the rate.
// Start bytes: at most one BDP in all may be outstanding without a grant; it refills at link rate.
// Contexts that ask within one poll share it in whole packets, in turns, so that a host that starts
// towards everybody does not put a BDP into every switch port.
// Announcements (REQUESTs because a cap changed) are spaced by the control share.
// Cost: O(active log active) per T_alloc and only when something changed; O(1) per update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/cadence/water_fill.h"
#include "cc/interface/uplink_arbiter.h"

namespace paceline::cc {

class CadenceSender final : public UplinkArbiter {
 public:
  explicit CadenceSender(const CadenceParams& params);

  void update(Nanos now, std::uint32_t context, const UplinkWant& want) override;
  void forget(Nanos now, std::uint32_t context) override;
  std::size_t poll(Nanos now, std::span<ShareOutput> out) override;
  Nanos next_wake() const override;
  std::string check_invariants(Nanos now) const override;

  // Live parameters; takes effect at the next poll.
  void set_params(const ParamBlock& params) override;

  std::size_t active() const { return active_.size(); }

 private:
  struct Entry {
    UplinkWant want;
    std::int64_t told_at = 0;
    std::uint32_t share_mbps = 0;     // as last delivered; >= link: free
    std::uint32_t cap_mbps = 0;       // newest
    std::uint32_t told_mbps = 0;      // cap the receiver was last told
    std::uint32_t told_contexts = 0;  // active contexts when the spacing was last told
    std::uint32_t position = 0;       // in active_, plus 1; 0 = not there
    bool asking = false;              // in asking_
  };

  std::uint32_t limit_of(const Entry& entry) const;
  void share_uplink(std::int64_t now);
  // Returns what of the capacity they use.
  std::uint64_t share_among(std::int64_t now, std::span<cadence::Party> parties,
                            std::uint64_t capacity);
  void deliver_changes(std::int64_t now, std::uint32_t context, std::uint32_t share,
                       std::uint32_t cap);
  void answer_starts(std::int64_t now);
  void answer(std::int64_t now, std::uint32_t context, std::uint32_t start_bytes);
  std::uint32_t spacing_ns() const;
  bool take_token(std::int64_t now);

  CadenceParams params_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> active_;    // contexts with want.active
  std::vector<std::uint32_t> asking_;    // contexts whose start bytes are not answered yet
  std::vector<std::uint32_t> given_;     // scratch of answer_starts
  std::vector<cadence::Party> parties_;  // scratch of share_uplink
  std::vector<ShareOutput> ready_;       // answers and changes to deliver
  std::size_t ready_head_ = 0;
  std::int64_t room_bytes_ = 0;  // unscheduled bytes the uplink may still take
  std::int64_t room_at_ = 0;
  std::int64_t credit_ns_ = 0;  // announcements: a token bucket in time
  std::int64_t credit_at_ = 0;
  std::int64_t share_at_ = 0;  // next water-fill, when dirty_
  std::size_t rotation_ = 0;   // where leftover packets of room go next
  bool dirty_ = false;
};

}  // namespace paceline::cc
