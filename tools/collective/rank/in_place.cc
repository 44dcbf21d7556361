#include "tools/collective/rank/in_place.h"

#include <set>

#include "tools/collective/rank/place_order.h"

namespace paceline::rank {

InPlace::InPlace(const workload::Schedule& schedule, std::uint32_t rank)
    : sent_(schedule.transfers.size()), lands_(schedule.transfers.size()) {
  std::set<std::uint32_t> receivers;
  for (const workload::Transfer& t : schedule.transfers) {
    if (t.from == rank || t.to == rank) receivers.insert(t.to);
  }
  receivers.insert(rank);
  for (const std::uint32_t receiver : receivers) {
    const PlaceOrder order(schedule, receiver);
    for (std::uint32_t i = 0; i < schedule.transfers.size(); ++i) {
      const workload::Transfer& t = schedule.transfers[i];
      if (t.from == t.to || !order.ordered(i)) continue;
      if (receiver == rank && t.from == rank) sent_[i] = true;
      const bool own = t.from == rank || receiver == rank;
      if (t.to == receiver && own && !t.sum) lands_[i] = true;
    }
  }
}

}  // namespace paceline::rank
