// How the buffer of a rank is divided: into the blocks of its schedule, and each block into the
// same number of parts, which follow one another. Part p of the operation moves part p of every
// block.
//
// In memory every place has room for the largest block, so that any place can hold any block.
#pragma once

#include <cstdint>

#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

// Elements of a block.
struct Extent {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

class PartCut {
 public:
  // No message has more than `chunk` elements, but for one a block where there are more blocks.
  PartCut(const workload::Schedule& schedule, std::uint64_t elements, std::uint64_t chunk);

  std::uint64_t elements() const { return elements_; }
  std::uint64_t parts() const { return parts_; }
  std::uint64_t place_room() const { return place_room_; }
  // Room for a part of the largest block.
  std::uint64_t part_room() const { return part_room_; }

  // The number of a block's first element; block_begin of the number of blocks is the end.
  std::uint64_t block_begin(std::uint32_t block) const {
    return workload::block_begin(elements_, blocks_, block);
  }
  std::uint64_t block_elements(std::uint32_t block) const {
    return workload::block_bytes(elements_, blocks_, block);
  }
  // The extent within the block.
  Extent part_of_block(std::uint32_t block, std::uint64_t part) const;

 private:
  std::uint64_t elements_;
  std::uint32_t blocks_;
  std::uint64_t parts_;
  std::uint64_t place_room_;
  std::uint64_t part_room_;
};

}  // namespace paceline::rank
