#include "tools/workload/schedules/symbol_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

namespace paceline::workload {

namespace {

std::string_view buffer_name(ScheduleBuffer buffer) {
  if (buffer == ScheduleBuffer::result) return "result";
  return buffer == ScheduleBuffer::input ? "input" : "scratch";
}

}  // namespace

std::uint32_t buffer_places(const Schedule& schedule, ScheduleBuffer buffer) {
  switch (buffer) {
    case ScheduleBuffer::result:
      return schedule.blocks;
    case ScheduleBuffer::input:
      return schedule.op == CollectiveOp::all_to_all ? schedule.blocks : 0;
    case ScheduleBuffer::scratch:
      return schedule.scratch;
  }
  return 0;
}

SymbolStore::SymbolStore(const Schedule& schedule)
    : schedule_(schedule), words_(words_per_place(schedule)) {
  const std::size_t places =
      place(schedule.ranks, ScheduleBuffer::result, 0);  // those of all ranks
  blocks_.assign(places, kNothing);
  data_.assign(places * words_, 0);
  for (std::uint32_t r = 0; r < schedule.ranks; ++r) fill_rank(r);
}

std::uint64_t SymbolStore::words_per_place(const Schedule& schedule) {
  return is_sum(schedule.op) ? (std::uint64_t{schedule.ranks} + 63) / 64 : 1;
}

std::size_t SymbolStore::place(std::uint32_t rank, ScheduleBuffer buffer,
                               std::uint32_t number) const {
  const std::size_t result = buffer_places(schedule_, ScheduleBuffer::result);
  const std::size_t input = buffer_places(schedule_, ScheduleBuffer::input);
  std::size_t place = rank * (result + input + schedule_.scratch) + number;
  if (buffer != ScheduleBuffer::result) place += result;
  if (buffer == ScheduleBuffer::scratch) place += input;
  return place;
}

void SymbolStore::put(std::uint32_t rank, ScheduleBuffer buffer, std::uint32_t number,
                      std::uint32_t block, std::uint32_t origin) {
  const std::size_t at = place(rank, buffer, number);
  blocks_[at] = block;
  if (is_sum(schedule_.op)) {
    data_[at * words_ + origin / 64] = std::uint64_t{1} << origin % 64;
  } else {
    data_[at] = origin;
  }
}

void SymbolStore::fill_rank(std::uint32_t rank) {
  const std::uint32_t share = schedule_.blocks / schedule_.ranks;
  for (std::uint32_t b = 0; b < schedule_.blocks; ++b) {
    const bool own = schedule_.op == CollectiveOp::all_gather   ? b / share == rank
                     : schedule_.op == CollectiveOp::broadcast  ? rank == schedule_.root
                     : schedule_.op == CollectiveOp::all_to_all ? b == rank
                                                                : true;
    if (own) put(rank, ScheduleBuffer::result, b, b, rank);
    if (schedule_.op == CollectiveOp::all_to_all) put(rank, ScheduleBuffer::input, b, b, rank);
  }
}

std::string SymbolStore::read(const Transfer& transfer, Message& message) const {
  message.words.reserve(transfer.pieces * words_);
  for (const Piece& p : schedule_.pieces_of(transfer)) {
    const std::size_t at = place(transfer.from, p.source_buffer, p.source);
    if (blocks_[at] == kNothing) {
      return fmt::format("reads place {} of {}, which holds nothing yet", p.source,
                         buffer_name(p.source_buffer));
    }
    if (blocks_[at] != p.block) {
      return fmt::format("moves block {} from place {} of {}, which holds block {}", p.block,
                         p.source, buffer_name(p.source_buffer), blocks_[at]);
    }
    const auto words = data_.begin() + static_cast<std::ptrdiff_t>(at * words_);
    message.words.insert(message.words.end(), words, words + static_cast<std::ptrdiff_t>(words_));
  }
  return "";
}

std::string SymbolStore::write(const Transfer& transfer, const Message& message) {
  const std::uint64_t* words = message.words.data();
  for (const Piece& p : schedule_.pieces_of(transfer)) {
    if (transfer.sum) {
      if (std::string error = add(transfer, p, words); !error.empty()) return error;
    } else {
      const std::size_t at = place(transfer.to, p.target_buffer, p.target);
      blocks_[at] = p.block;
      std::copy_n(words, words_, data_.data() + at * words_);
    }
    words += words_;
  }
  return "";
}

std::string SymbolStore::add(const Transfer& transfer, const Piece& piece,
                             const std::uint64_t* words) {
  const std::size_t at = place(transfer.to, piece.target_buffer, piece.target);
  if (blocks_[at] != piece.block) {
    const std::string held =
        blocks_[at] == kNothing ? "nothing yet" : fmt::format("block {}", blocks_[at]);
    return fmt::format("adds block {} to place {} of {}, which holds {}", piece.block, piece.target,
                       buffer_name(piece.target_buffer), held);
  }
  for (std::size_t w = 0; w < words_; ++w) {
    std::uint64_t& sum = data_[at * words_ + w];
    if (const std::uint64_t twice = sum & words[w]; twice != 0) {
      return fmt::format("adds the contribution of rank {} to block {} of rank {} a second time",
                         w * 64 + static_cast<std::size_t>(std::countr_zero(twice)), piece.block,
                         transfer.to);
    }
    sum |= words[w];
  }
  return "";
}

std::string SymbolStore::sum_error(std::uint32_t rank, std::uint32_t block) const {
  const std::size_t at = place(rank, ScheduleBuffer::result, block);
  if (blocks_[at] != block) {
    return fmt::format("rank {}: block {} of the result holds block {}", rank, block, blocks_[at]);
  }
  for (std::uint32_t r = 0; r < schedule_.ranks; ++r) {
    if ((data_[at * words_ + r / 64] >> r % 64 & 1) == 0) {
      return fmt::format("rank {}: block {} of the result lacks the contribution of rank {}", rank,
                         block, r);
    }
  }
  return "";
}

std::string SymbolStore::move_error(std::uint32_t rank, std::uint32_t number, std::uint32_t block,
                                    std::uint32_t origin) const {
  const std::size_t at = place(rank, ScheduleBuffer::result, number);
  if (blocks_[at] == block && data_[at] == origin) return "";
  const std::string held = blocks_[at] == kNothing
                               ? "nothing"
                               : fmt::format("block {} of rank {}", blocks_[at], data_[at]);
  return fmt::format("rank {}: block {} of the result holds {} instead of block {} of rank {}",
                     rank, number, held, block, origin);
}

std::string SymbolStore::rank_error(std::uint32_t rank) const {
  const Schedule& s = schedule_;
  if (s.op == CollectiveOp::reduce && rank != s.root) return "";
  const std::uint32_t share = s.blocks / s.ranks;
  const bool part = s.op == CollectiveOp::reduce_scatter;
  const std::uint32_t end = part ? (rank + 1) * share : s.blocks;
  for (std::uint32_t b = part ? rank * share : 0; b < end; ++b) {
    std::string error;
    if (is_sum(s.op)) {
      error = sum_error(rank, b);
    } else if (s.op == CollectiveOp::all_to_all) {
      error = move_error(rank, b, rank, b);
    } else {
      error = move_error(rank, b, b, s.op == CollectiveOp::all_gather ? b / share : s.root);
    }
    if (!error.empty()) return error;
  }
  return "";
}

std::string SymbolStore::result_error() const {
  for (std::uint32_t r = 0; r < schedule_.ranks; ++r) {
    if (std::string error = rank_error(r); !error.empty()) return error;
  }
  return "";
}

}  // namespace paceline::workload
