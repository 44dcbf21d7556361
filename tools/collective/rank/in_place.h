// Which transfers of a rank need no copy at their sender or at their receiver: the waits of the
// schedule keep all others off the places that they are sent from, or land in.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

class InPlace {
 public:
  InPlace(const workload::Schedule& schedule, std::uint32_t rank);

  // For transfers that the rank sends: the data read stays unchanged until the receiver has it.
  bool is_sent(std::uint32_t transfer) const { return sent_[transfer]; }
  // For transfers that the rank sends or receives: data can be written to its final place.
  bool lands(std::uint32_t transfer) const { return lands_[transfer]; }

 private:
  std::vector<bool> sent_;
  std::vector<bool> lands_;
};

}  // namespace paceline::rank
