#include "tools/workload/schedules/schedule_builder.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace paceline::workload {

ScheduleBuilder::ScheduleBuilder(CollectiveOp op, std::uint32_t ranks, std::uint32_t blocks,
                                 std::uint32_t scratch, std::uint32_t root)
    : last_write_(std::size_t{ranks} * (std::size_t{blocks} + scratch), kNone) {
  schedule_.op = op;
  schedule_.ranks = ranks;
  schedule_.blocks = blocks;
  schedule_.scratch = scratch;
  schedule_.root = root;
}

std::uint32_t ScheduleBuilder::begin(std::uint32_t from, std::uint32_t to, bool sum) {
  end_transfer();
  schedule_.transfers.push_back({.from = from,
                                 .to = to,
                                 .first_piece = static_cast<std::uint32_t>(schedule_.pieces.size()),
                                 .first_wait = static_cast<std::uint32_t>(schedule_.waits.size()),
                                 .sum = sum});
  return static_cast<std::uint32_t>(schedule_.transfers.size() - 1);
}

void ScheduleBuilder::add(const Piece& piece) {
  const Transfer& transfer = schedule_.transfers.back();
  schedule_.pieces.push_back(piece);
  wait_for_writes(transfer.from, piece.source_buffer, piece.source);
  // A sum within a rank also depends on the value that it adds to; between ranks the sender cannot
  // know.
  if (transfer.sum && transfer.from == transfer.to) {
    wait_for_writes(transfer.to, piece.target_buffer, piece.target);
  }
}

Schedule ScheduleBuilder::finish() {
  end_transfer();
  return std::move(schedule_);
}

std::size_t ScheduleBuilder::place(std::uint32_t rank, ScheduleBuffer buffer,
                                   std::uint32_t number) const {
  const std::size_t first = std::size_t{rank} * (std::size_t{schedule_.blocks} + schedule_.scratch);
  return first + number + (buffer == ScheduleBuffer::scratch ? schedule_.blocks : 0);
}

void ScheduleBuilder::wait_for_writes(std::uint32_t rank, ScheduleBuffer buffer,
                                      std::uint32_t number) {
  if (buffer == ScheduleBuffer::input) return;  // no schedule built here writes to it
  for (std::uint32_t w = last_write_[place(rank, buffer, number)]; w != kNone; w = writes_[w].next)
    wait_for(writes_[w].transfer);
}

// Its writes count for later transfers only.
void ScheduleBuilder::end_transfer() {
  if (schedule_.transfers.empty()) return;
  Transfer& transfer = schedule_.transfers.back();
  auto& waits = schedule_.waits;
  const auto first = waits.begin() + transfer.first_wait;
  std::sort(first, waits.end());
  waits.erase(std::unique(first, waits.end()), waits.end());
  transfer.waits = static_cast<std::uint32_t>(waits.size()) - transfer.first_wait;
  transfer.pieces = static_cast<std::uint32_t>(schedule_.pieces.size()) - transfer.first_piece;
  // After others, unless it waits for them.
  const bool after_others = transfer.sum && transfer.from != transfer.to;
  const auto number = static_cast<std::uint32_t>(schedule_.transfers.size() - 1);
  for (const Piece& piece : schedule_.pieces_of(transfer)) {
    assert(piece.target_buffer != ScheduleBuffer::input);
    std::uint32_t& last = last_write_[place(transfer.to, piece.target_buffer, piece.target)];
    writes_.push_back({number, after_others ? last : kNone});
    last = static_cast<std::uint32_t>(writes_.size() - 1);
  }
}

}  // namespace paceline::workload
