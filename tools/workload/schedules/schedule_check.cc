#include "tools/workload/schedules/schedule_check.h"

#include <fmt/format.h>

#include "tools/workload/schedules/symbol_run.h"
#include "tools/workload/schedules/symbol_store.h"

namespace paceline::workload {

namespace {

// Most 64-bit words of symbols, in places and under way, and most waits: half a gigabyte each.
constexpr std::uint64_t kMostSymbolWords = 1ULL << 26;
constexpr std::uint64_t kMostWaits = 1ULL << 27;

std::string shape_error(const Schedule& s) {
  if (s.ranks == 0 || s.blocks == 0) {
    return fmt::format("ranks = {}, blocks = {}: allowed is 1 or more", s.ranks, s.blocks);
  }
  if (s.root >= s.ranks) return fmt::format("root = {}: allowed is [0 .. {}]", s.root, s.ranks - 1);
  const bool shares = s.op == CollectiveOp::reduce_scatter || s.op == CollectiveOp::all_gather;
  if (shares && s.blocks % s.ranks != 0) {
    return fmt::format("blocks = {}: allowed is a multiple of {}, the ranks", s.blocks, s.ranks);
  }
  if (s.op == CollectiveOp::all_to_all && s.blocks != s.ranks) {
    return fmt::format("blocks = {}: allowed is {}, one a rank", s.blocks, s.ranks);
  }
  return "";
}

std::string piece_error(const Schedule& s, const Piece& p) {
  if (p.block >= s.blocks) {
    return fmt::format("block = {}: allowed is [0 .. {}]", p.block, s.blocks - 1);
  }
  if (p.source >= buffer_places(s, p.source_buffer)) {
    return fmt::format("source = {}: the buffer has {} places", p.source,
                       buffer_places(s, p.source_buffer));
  }
  if (p.target >= buffer_places(s, p.target_buffer)) {
    return fmt::format("target = {}: the buffer has {} places", p.target,
                       buffer_places(s, p.target_buffer));
  }
  return "";
}

std::string wait_error(const Schedule& s, std::uint32_t number, std::uint32_t wait) {
  if (wait >= number) return fmt::format("waits for transfer {}: allowed is an earlier one", wait);
  const std::uint32_t rank = s.transfers[number].from;
  const Transfer& earlier = s.transfers[wait];
  if (earlier.from == rank || earlier.to == rank) return "";
  return fmt::format(
      "waits for transfer {} (rank {} to rank {}): allowed is one that rank {} "
      "sends or receives",
      wait, earlier.from, earlier.to, rank);
}

bool is_within(std::uint32_t first, std::uint32_t count, std::size_t size) {
  return std::uint64_t{first} + count <= size;
}

std::string transfer_error(const Schedule& s, std::uint32_t number) {
  const Transfer& t = s.transfers[number];
  if (t.from >= s.ranks || t.to >= s.ranks) {
    return fmt::format("from = {}, to = {}: allowed is [0 .. {}]", t.from, t.to, s.ranks - 1);
  }
  if (!is_within(t.first_piece, t.pieces, s.pieces.size())) {
    return fmt::format("pieces {} to {}: there are {}", t.first_piece,
                       std::uint64_t{t.first_piece} + t.pieces, s.pieces.size());
  }
  if (!is_within(t.first_wait, t.waits, s.waits.size())) {
    return fmt::format("waits {} to {}: there are {}", t.first_wait,
                       std::uint64_t{t.first_wait} + t.waits, s.waits.size());
  }
  if (t.sum && !is_sum(s.op)) return fmt::format("sum: {} only moves data", to_string(s.op));
  for (const Piece& p : s.pieces_of(t)) {
    if (std::string error = piece_error(s, p); !error.empty()) return error;
  }
  for (const std::uint32_t wait : s.waits_of(t)) {
    if (std::string error = wait_error(s, number, wait); !error.empty()) return error;
  }
  return "";
}

// Checks the size of a run. Transfers may share pieces and waits.
std::string size_error(const Schedule& s) {
  const std::uint64_t a_rank = std::uint64_t{s.blocks} * 2 + s.scratch;
  std::uint64_t places = a_rank * s.ranks;
  std::uint64_t waits = 0;
  if (a_rank <= kMostSymbolWords && s.transfers.size() < 0xFFFF'FFFF) {
    for (const Transfer& t : s.transfers) {
      places += t.pieces;
      waits += t.waits;
    }
    if (places <= kMostSymbolWords / SymbolStore::words_per_place(s) && waits <= kMostWaits)
      return "";
  }
  return "the schedule has too many ranks, blocks or transfers to be checked";
}

}  // namespace

std::string check_schedule(const Schedule& schedule, std::uint64_t seed) {
  if (std::string error = shape_error(schedule); !error.empty()) return error;
  if (std::string error = size_error(schedule); !error.empty()) return error;
  for (std::uint32_t t = 0; t < schedule.transfers.size(); ++t) {
    if (const std::string error = transfer_error(schedule, t); !error.empty())
      return fmt::format("transfer {}: {}", t, error);
  }
  return SymbolRun(schedule, seed).run();
}

}  // namespace paceline::workload
