// Where in a rank's staging memory its buffers and the slot of each transfer are. Every rank
// computes it alike, for itself and for those that it sends to. Staging memory has the buffers,
// then the slots of what the rank receives, once per part in progress (`window`, or all parts if
// they are fewer), then those of what it sends, the same number of times.
#pragma once

#include <cstdint>
#include <vector>

#include "tools/collective/rank/buffer_layout.h"
#include "tools/collective/rank/part_cut.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

class SlotLayout {
 public:
  SlotLayout(const workload::Schedule& schedule, const PartCut& cut, std::uint32_t window);

  const BufferLayout& buffers() const { return buffers_; }
  // Bytes from the beginning of the receiver's or the sender's staging memory.
  std::uint64_t receive_slot(std::uint32_t transfer, std::uint64_t part) const;
  std::uint64_t send_slot(std::uint32_t transfer, std::uint64_t part) const;
  std::uint64_t staging_bytes(std::uint32_t rank) const;

 private:
  const workload::Schedule& schedule_;
  BufferLayout buffers_;
  std::uint64_t slots_at_;
  std::uint64_t window_;
  std::vector<std::uint64_t> receive_at_;  // by transfer, within a part
  std::vector<std::uint64_t> send_at_;
  std::vector<std::uint64_t> received_;  // by rank, bytes of a part
  std::vector<std::uint64_t> sent_;
};

}  // namespace paceline::rank
