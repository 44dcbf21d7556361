// Max-min shares of the downlink among the active channels, and the GRANTs that follow: rates come
// down where somebody else needs them, and go up within the capacity beside everything committed
// (I1). It writes the channels' rates and queues their GRANTs; what is to happen later it returns.
//
// Cost: O(active). No allocation after grow().
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cc/cadence/params.h"
#include "cc/cadence/receiver/channel_table.h"
#include "cc/grants/water_fill.h"

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
  struct Outcome {
    std::int64_t retry_at = kNeverNanos.count;  // allocate again, although nothing changed
    bool lowered = false;                       // confirmations are due
  };

  void grow(std::size_t channels);
  Outcome plan(const Round& r);
  // The largest excess of committed rates over the capacity after an increase: 0, by I1.
  std::uint64_t worst_raise() const { return worst_raise_; }

 private:
  // The active channels of an allocation, by peer. Columns: most passes read two or three of them,
  // one slot after the other.
  struct Slots {
    std::size_t size = 0;  // in use
    std::vector<std::uint32_t> peer;
    std::vector<std::uint32_t> limit;
    std::vector<std::uint32_t> share;
    std::vector<std::uint32_t> grant;  // the channel's, kept in step while an allocation runs
    std::vector<std::uint32_t> com;    // likewise
    std::vector<std::uint8_t> weight;
    std::vector<std::uint64_t> left;  // bytes
  };

  void collect(const Round& r);
  void share_out(std::uint64_t capacity);
  std::span<const std::uint32_t> above() const { return {above_.data(), above_count_}; }
  std::span<const std::uint32_t> below() const { return {below_.data(), below_count_}; }
  template <class Passes>
  std::span<const std::uint32_t> select(std::span<const std::uint32_t> from, Passes&& passes);
  void fetch_channel(const Round& r, std::span<const std::uint32_t> slots, std::size_t place) const;
  void lift(const Round& r, std::uint32_t at, std::uint64_t& room, std::uint32_t delay_us);
  void lower(const Round& r);
  void raise(const Round& r);
  void retry(std::int64_t at) { outcome_.retry_at = std::min(outcome_.retry_at, at); }

  Slots slots_;
  WaterFill fill_;
  std::vector<std::uint32_t> above_;     // slots with a grant above their share; then room
  std::vector<std::uint32_t> below_;     // likewise
  std::vector<std::uint32_t> selected_;  // of either, as select() left it
  std::size_t above_count_ = 0;
  std::size_t below_count_ = 0;
  Outcome outcome_;
  std::uint64_t worst_raise_ = 0;
};

}  // namespace paceline::cc::cadence
