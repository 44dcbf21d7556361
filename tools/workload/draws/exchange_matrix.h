// Bytes from each rank to each other in an uneven all-to-all.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace paceline::workload {

// Receiver j attracts weight exp(skew * z_j), z_j standard normal, by seed and draw.
struct ReceiverWeights {
  double skew = 0;
  std::uint64_t seed = 0;
  std::uint64_t draw = 0;
};

// Rank r sends row_totals[r], at most 2^53, to the others: split by weight, to the byte. The bytes
// from rank r to rank j are at r * ranks + j. At least 2 ranks.
std::vector<std::uint64_t> exchange_matrix(std::span<const std::uint64_t> row_totals,
                                           const ReceiverWeights& receivers);

}  // namespace paceline::workload
