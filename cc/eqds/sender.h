// The uplink half of EQDS (uplink_arbiter.h) has two rules. Speculative bytes of all contexts
// together are limited to what the link carries in one and a half round trips, also if a host
// starts towards many receivers. And each context learns how many contexts share the link, so that
// its receiver gives no credit that would remain unused (UEC: pull target divided by the active
// sources).
#pragma once

#include <cstdint>
#include <vector>

#include "cc/eqds/params.h"
#include "cc/interface/uplink_arbiter.h"

namespace paceline::cc {

class EqdsSender final : public UplinkArbiter {
 public:
  explicit EqdsSender(const EqdsParams& params) : params_(params), room_bytes_(most()) {}

  void update(Nanos now, std::uint32_t context, const UplinkWant& want) override;
  void forget(Nanos now, std::uint32_t context) override;
  std::size_t poll(Nanos now, std::span<ShareOutput> out) override;
  Nanos next_wake() const override { return ready_.empty() ? kNeverNanos : Nanos{0}; }
  void set_params(const ParamBlock& params) override;
  std::string check_invariants(Nanos now) const override;

 private:
  struct Entry {
    bool active = false;
    bool due = false;        // in ready_
    bool asks = false;       // start_bytes wait for an answer
    std::uint32_t told = 0;  // number of contexts that it was told last
    std::uint32_t start_bytes = 0;
  };

  std::int64_t most() const { return params_.first_window_bytes; }

  EqdsParams params_;
  std::vector<Entry> entries_;        // by context
  std::vector<std::uint32_t> ready_;  // to be told something, in order
  std::uint32_t active_ = 0;
  std::int64_t room_bytes_;  // for speculation; regained at the rate of the link
  std::int64_t room_at_ = 0;
};

}  // namespace paceline::cc
