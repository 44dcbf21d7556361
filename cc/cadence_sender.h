// Cadence's uplink governor (port_sender.h): max-min shares of the transmit rate among the active
// contexts, limited by what they are granted, and the bytes that may leave without a grant.
//
// Shares: T_i = min(w_i * level, limit_i), sum T = C. The cap announced to a receiver is the share
// the context would have if that receiver's grant were unlimited: the water level, or what is left
// of the link plus the largest share when nothing is short (Charny's advertised rate, the
// distributed max-min algorithm of explicit-rate ATM). Contexts that wait for their first grant
// count as unlimited.
// Start bytes: one BDP may be outstanding without a grant; the room refills at link rate. Contexts
// that ask within one poll share it in whole packets, rotating, so that a host that starts towards
// everybody does not put a BDP into every switch port.
// Cost: O(active) per T_alloc and only when something changed; O(1) per update.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cc/cadence_params.h"
#include "cc/port_sender.h"

namespace paceline::cc {

class CadenceSender final : public PortSender {
 public:
  explicit CadenceSender(const CadenceParams& params);

  void update(Nanos now, std::uint32_t context, const UplinkWant& want) override;
  void forget(Nanos now, std::uint32_t context) override;
  std::size_t poll(Nanos now, std::span<ShareOutput> out) override;
  Nanos next_wake() const override;
  std::string check_invariants(Nanos now) const override;

  // Live parameters; takes effect at the next poll.
  void set_params(const CadenceParams& params);

  std::size_t active() const { return active_.size(); }

 private:
  struct Entry {
    UplinkWant want;
    std::uint32_t share_mbps = 0;  // as last delivered
    std::uint32_t cap_mbps = 0;
    std::uint32_t told_mbps = 0;  // cap last announced
    std::int64_t told_at = 0;
    std::uint32_t position = 0;    // in active_, plus 1; 0 = not there
    std::uint32_t next_share = 0;  // computed, not yet delivered
    std::uint32_t next_cap = 0;
    bool asking = false;
    bool pending = false;  // in ready_
  };

  void share_uplink(Nanos now);
  void answer_starts(Nanos now);
  void refill(Nanos now);
  void make_ready(std::uint32_t context);

  CadenceParams params_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> active_;  // contexts with want.active
  std::vector<std::uint32_t> asking_;  // contexts whose start bytes are not answered yet
  std::vector<ShareOutput> ready_;     // answers and changes to deliver
  std::vector<std::uint32_t> order_;   // scratch of share_uplink
  std::size_t ready_head_ = 0;
  std::int64_t room_bytes_ = 0;  // unscheduled bytes the uplink may still take
  std::int64_t room_at_ = 0;
  std::int64_t shared_at_ = 0;  // last water-fill
  std::uint64_t rotation_ = 0;  // where leftover packets of room go next
  bool dirty_ = false;
};

}  // namespace paceline::cc
