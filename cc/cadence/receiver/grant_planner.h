// Max-min shares of the downlink among the active channels, and the GRANTs that follow: rates are
// lowered where another channel needs them, and raised within the capacity beside everything
// committed (I1). It writes the channels' rates and queues their GRANTs; later actions are
// returned.
//
// Cost: O(active log active), O(active) among equals. No allocation after grow().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/cadence/receiver/channel_table.h"
#include "cc/cadence/water_fill.h"

namespace paceline::cc::cadence {

class GrantPlanner {
 public:
  // Working state of an allocation.
  struct Round {
    const CadenceParams& params;
    ChannelTable& table;
    std::int64_t now = 0;
    std::uint64_t capacity = 0;  // Mb/s that rates may add up to
  };
  void grow(std::size_t channels) { parties_.reserve(channels); }
  // Returns when to allocate again, although nothing changed.
  std::int64_t plan(const Round& r);
  // The largest excess of committed rates over the capacity after an increase: 0, by I1.
  std::uint64_t worst_raise() const { return worst_raise_; }

 private:
  void collect(const Round& r);
  void lower(const Round& r);
  void raise(const Round& r);
  void lift(const Round& r, const Party& party, std::uint64_t& room, std::uint32_t delay_us);
  void retry(std::int64_t at) { retry_at_ = std::min(retry_at_, at); }

  std::vector<Party> parties_;  // active channels; the id is the peer
  std::int64_t retry_at_ = kNeverNanos.count;
  std::uint64_t worst_raise_ = 0;
};

}  // namespace paceline::cc::cadence
