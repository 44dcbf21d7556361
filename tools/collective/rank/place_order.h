// Which transfers can use the places of a rank without a copy: be sent from them, or land there.
//
// A sent place must not change from the beginning of the transfer until the data is in the
// receiver's memory. A landing place may be written at any time between the transfer's beginning
// and its arrival. So the waits must order such a transfer with all others that use its places at
// the rank, unless all of them read.
//
// A transfer begins after the arrival of those dependencies that its sender receives, and after the
// acknowledgement of those that its sender sends. An acknowledgement tells that all data is in the
// receiver's memory, but not that the receiver has taken it.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

class PlaceOrder {
 public:
  PlaceOrder(const workload::Schedule& schedule, std::uint32_t rank);

  // For transfers that `rank` sends or receives.
  bool ordered(std::uint32_t transfer) const { return !unordered_[transfer]; }

 private:
  struct Use {
    workload::ScheduleBuffer buffer;
    std::uint32_t place;
    std::uint32_t block;
    std::uint32_t transfer;
    bool writes;
  };
  // The later one of the schedule must be after the earlier one.
  struct Pair {
    std::uint32_t earlier;
    std::uint32_t later;
    friend auto operator<=>(const Pair&, const Pair&) = default;
  };

  std::vector<Use> uses() const;
  std::vector<Pair> pairs(const std::vector<Use>& uses);
  void add_pair(const Use& a, const Use& b, std::vector<Pair>& pairs);
  void check(const std::vector<Pair>& pairs);
  void follow(std::uint32_t first, std::uint32_t last);

  const workload::Schedule& schedule_;
  std::uint32_t rank_;
  std::vector<bool> unordered_;  // by transfer
  // By transfer, of up to 64 transfers at once, a bit each:
  std::vector<std::uint64_t> is_one_;
  std::vector<std::uint64_t> is_after_;
};

}  // namespace paceline::rank
