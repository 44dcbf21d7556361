#include "tools/workload/schedules/schedule.h"

#include <algorithm>
#include <array>

namespace paceline::workload {

namespace {

constexpr std::array<std::string_view, kCollectiveOps> kOpNames{
    "all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "reduce"};

}  // namespace

std::string_view to_string(CollectiveOp op) { return kOpNames[static_cast<std::size_t>(op)]; }

std::optional<CollectiveOp> find_collective_op(std::string_view name) {
  const auto found = std::find(kOpNames.begin(), kOpNames.end(), name);
  if (found == kOpNames.end()) return std::nullopt;
  return static_cast<CollectiveOp>(found - kOpNames.begin());
}

std::uint64_t block_begin(std::uint64_t bytes, std::uint32_t blocks, std::uint32_t block) {
  // floor(block * bytes / blocks) without a product of more than 64 bits
  return bytes / blocks * block + bytes % blocks * block / blocks;
}

std::uint64_t transfer_bytes(const Schedule& schedule, const Transfer& transfer,
                             std::uint64_t bytes) {
  std::uint64_t sum = 0;
  for (const Piece& piece : schedule.pieces_of(transfer))
    sum += block_bytes(bytes, schedule.blocks, piece.block);
  return sum;
}

std::vector<std::uint64_t> bytes_sent(const Schedule& schedule, std::uint64_t bytes) {
  std::vector<std::uint64_t> sent(schedule.ranks);
  for (const Transfer& t : schedule.transfers) {
    if (t.from != t.to) sent[t.from] += transfer_bytes(schedule, t, bytes);
  }
  return sent;
}

}  // namespace paceline::workload
