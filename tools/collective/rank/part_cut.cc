#include "tools/collective/rank/part_cut.h"

#include <algorithm>

namespace paceline::rank {

namespace {

std::uint64_t divide_up(std::uint64_t value, std::uint64_t by) { return (value + by - 1) / by; }

// The most blocks that one message moves.
std::uint64_t blocks_of_largest(const workload::Schedule& schedule) {
  std::uint64_t most = 1;
  for (const workload::Transfer& t : schedule.transfers) {
    if (t.from != t.to) most = std::max<std::uint64_t>(most, t.pieces);
  }
  return most;
}

}  // namespace

PartCut::PartCut(const workload::Schedule& schedule, std::uint64_t elements, std::uint64_t chunk)
    : elements_(elements),
      blocks_(schedule.blocks),
      parts_(1),
      place_room_(divide_up(elements, schedule.blocks)) {
  const std::uint64_t of_block = std::max<std::uint64_t>(1, chunk / blocks_of_largest(schedule));
  parts_ = std::max<std::uint64_t>(1, divide_up(place_room_, of_block));
  part_room_ = divide_up(place_room_, parts_);
}

Extent PartCut::part_of_block(std::uint32_t block, std::uint64_t part) const {
  const std::uint64_t count = block_elements(block);
  const std::uint64_t begin = part * count / parts_;
  return {begin, (part + 1) * count / parts_ - begin};
}

}  // namespace paceline::rank
