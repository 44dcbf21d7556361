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

  // Of a transfer that the rank sends: what it reads stays until it is at the receiver.
  bool is_sent(std::uint32_t transfer) const { return sent_[transfer]; }
  // Of a transfer that the rank sends or receives: it can be written where it belongs.
  bool lands(std::uint32_t transfer) const { return lands_[transfer]; }

 private:
  std::vector<bool> sent_;
  std::vector<bool> lands_;
};

}  // namespace paceline::rank
