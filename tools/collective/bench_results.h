// What the ranks of a timed collective report for each size.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "tools/collective/rank_listener.h"

namespace paceline::tools {

// The report of one rank for one size.
struct RankResult {
  double mean_us = 0;
  std::uint64_t wrong = 0;    // elements
  std::uint64_t element = 0;  // the first wrong one
  float expected = 0;
  float got = 0;
};

class BenchResults final : public RankListener {
 public:
  BenchResults(std::uint32_t ranks, std::uint32_t sizes);

  void take(std::uint32_t rank, const nlohmann::json& message) override;
  bool complete(std::uint32_t rank) const override;

  // By rank; empty if one is missing.
  std::vector<RankResult> of_size(std::uint32_t size) const;

 private:
  std::vector<std::vector<std::optional<RankResult>>> results_;  // by rank, then by size
};

}  // namespace paceline::tools
