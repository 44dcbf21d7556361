// The steps of one ring, which schedules put together.
#pragma once

#include <cstdint>

#include "tools/workload/schedules/schedule_builder.h"

namespace paceline::workload {

// Member i is rank first + i * stride, modulo the ranks of the schedule. A chunk per member: chunk
// c has the blocks first_block + c * chunk_stride + j * block_stride, j below chunk_blocks.
struct RingShape {
  std::uint32_t members = 0;
  std::uint32_t first = 0;
  std::uint32_t stride = 1;
  std::uint32_t first_block = 0;
  std::uint32_t chunk_stride = 1;
  std::uint32_t chunk_blocks = 1;
  std::uint32_t block_stride = 0;
};

// members - 1 steps, after which member i has the sum of chunk i.
void add_ring_reduce_scatter(ScheduleBuilder& builder, const RingShape& ring);
// members - 1 steps from where member i has chunk i to where all have all.
void add_ring_all_gather(ScheduleBuilder& builder, const RingShape& ring);

}  // namespace paceline::workload
