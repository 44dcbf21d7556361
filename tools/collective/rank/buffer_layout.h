// Where a rank's buffers are: at the beginning of its staging memory, at the same places in every
// rank, so that a transfer can be sent from them and land in them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "tools/collective/rank/part_cut.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::rank {

// Elements of a buffer, counted from the beginning of the first buffer.
struct BufferRange {
  std::uint64_t begin = 0;
  std::uint64_t count = 0;
};

class BufferLayout {
 public:
  // window: parts in progress at a time, each with scratch of its own.
  BufferLayout(const workload::Schedule& schedule, const PartCut& cut, std::uint32_t window);

  std::uint64_t elements() const { return first_.back(); }
  BufferRange buffer(workload::ScheduleBuffer which) const;
  // Part `part` of what a piece reads or writes.
  BufferRange source(const workload::Piece& piece, std::uint64_t part) const;
  BufferRange target(const workload::Piece& piece, std::uint64_t part) const;

  // The first byte of part `part` of what a transfer reads or writes, where its pieces follow one
  // another in memory.
  std::optional<std::uint64_t> source_of(const workload::Transfer& transfer,
                                         std::uint64_t part) const;
  std::optional<std::uint64_t> target_of(const workload::Transfer& transfer,
                                         std::uint64_t part) const;

 private:
  using RangeOfPiece = BufferRange (BufferLayout::*)(const workload::Piece&, std::uint64_t) const;
  BufferRange range(workload::ScheduleBuffer which, std::uint32_t place, std::uint32_t block,
                    std::uint64_t part) const;
  std::optional<std::uint64_t> first_byte(const workload::Transfer& transfer, std::uint64_t part,
                                          RangeOfPiece of_piece) const;

  const workload::Schedule& schedule_;
  const PartCut& cut_;
  std::uint64_t window_;                // parts in progress
  std::array<std::uint64_t, 4> first_;  // by ScheduleBuffer, its first element; then the end
};

}  // namespace paceline::rank
