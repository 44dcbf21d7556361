#include "tools/workload/job_plans/uneven_exchange.h"

#include <algorithm>
#include <array>
#include <cstddef>

namespace paceline::workload {

bool is_direct_exchange(const Schedule& schedule) {
  return std::ranges::all_of(schedule.transfers, [&](const Transfer& t) {
    if (t.pieces != 1) return false;
    const Piece& piece = schedule.pieces_of(t).front();
    return piece.block == t.to && piece.source_buffer == ScheduleBuffer::input &&
           piece.target_buffer == ScheduleBuffer::result;
  });
}

std::span<const std::string_view> direct_exchange_names() {
  static constexpr std::array<std::string_view, 4> kNames{"nccl", "linear_shift", "pairwise_xor",
                                                          "window"};
  return kNames;
}

std::vector<std::uint64_t> uneven_bytes(const Schedule& schedule, std::uint64_t bytes,
                                        const ReceiverWeights& receivers, bool transposed) {
  const std::uint32_t n = schedule.ranks;
  std::vector<std::uint64_t> row_totals;
  for (std::uint32_t r = 0; r < n; ++r) row_totals.push_back(bytes - block_bytes(bytes, n, r));
  const std::vector<std::uint64_t> matrix = exchange_matrix(row_totals, receivers);
  std::vector<std::uint64_t> out;
  for (const Transfer& t : schedule.transfers) {
    const std::size_t row = transposed ? t.to : t.from;
    out.push_back(matrix[row * n + (transposed ? t.from : t.to)]);
  }
  return out;
}

}  // namespace paceline::workload
