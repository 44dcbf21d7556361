#include "tools/collective/rank/buffer_layout.h"

#include <algorithm>

namespace paceline::rank {

namespace {

using workload::CollectiveOp;
using workload::Piece;
using workload::ScheduleBuffer;
using workload::Transfer;

}  // namespace

BufferLayout::BufferLayout(const workload::Schedule& schedule, const PartCut& cut,
                           std::uint32_t window)
    : schedule_(schedule), cut_(cut), window_(std::min<std::uint64_t>(window, cut.parts())) {
  const std::uint64_t whole = schedule.blocks * cut.place_room();
  const std::uint64_t input = schedule.op == CollectiveOp::all_to_all ? whole : 0;
  const std::uint64_t scratch = window_ * schedule.scratch * cut.part_room();
  first_ = {0, whole, whole + input, whole + input + scratch};
}

BufferRange BufferLayout::buffer(ScheduleBuffer which) const {
  const auto number = static_cast<std::size_t>(which);
  return {first_[number], first_[number + 1] - first_[number]};
}

BufferRange BufferLayout::range(ScheduleBuffer which, std::uint32_t place, std::uint32_t block,
                                std::uint64_t part) const {
  const Extent extent = cut_.part_of_block(block, part);
  const std::uint64_t within = which == ScheduleBuffer::scratch
                                   ? (part % window_ * schedule_.scratch + place) * cut_.part_room()
                                   : place * cut_.place_room() + extent.begin;
  return {first_[static_cast<std::size_t>(which)] + within, extent.count};
}

BufferRange BufferLayout::source(const Piece& piece, std::uint64_t part) const {
  return range(piece.source_buffer, piece.source, piece.block, part);
}

BufferRange BufferLayout::target(const Piece& piece, std::uint64_t part) const {
  return range(piece.target_buffer, piece.target, piece.block, part);
}

std::optional<std::uint64_t> BufferLayout::source_of(const Transfer& transfer,
                                                     std::uint64_t part) const {
  return first_byte(transfer, part, &BufferLayout::source);
}

std::optional<std::uint64_t> BufferLayout::target_of(const Transfer& transfer,
                                                     std::uint64_t part) const {
  return first_byte(transfer, part, &BufferLayout::target);
}

std::optional<std::uint64_t> BufferLayout::first_byte(const Transfer& transfer, std::uint64_t part,
                                                      RangeOfPiece of_piece) const {
  std::optional<BufferRange> all;
  for (const Piece& piece : schedule_.pieces_of(transfer)) {
    const BufferRange one = (this->*of_piece)(piece, part);
    if (one.count == 0) continue;
    if (!all) {
      all = one;
    } else if (all->begin + all->count == one.begin) {
      all->count += one.count;
    } else {
      return std::nullopt;
    }
  }
  if (!all) return std::nullopt;
  return all->begin * sizeof(float);
}

}  // namespace paceline::rank
