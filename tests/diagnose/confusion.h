// A confusion matrix: true causes against the verdicts given.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/diagnosis/verdict.h"

namespace paceline::tools {

class Confusion {
 public:
  // Only faults are true causes; an incast or a narrow core counts as none.
  void add(std::optional<diagnosis::Cause> truth, const std::string& culprit,
           const std::vector<diagnosis::Verdict>& said);

  // Shares: of the fault verdicts, those that are true; of the faults, those found; of the faults
  // found, those with the right culprit.
  double precision() const;
  double recall() const;
  double named() const;
  // Verdicts that blame the network although a rank is slow.
  std::uint32_t network_for_rank() const { return network_for_rank_; }
  // The share of incasts and narrow cores that were reported.
  double designs_told() const;
  std::string text() const;

 private:
  static constexpr std::size_t kNone = diagnosis::kCauses;

  std::array<std::array<std::uint32_t, kNone + 1>, kNone + 1> counts_{};  // [truth][said]
  std::uint32_t faults_ = 0;
  std::uint32_t found_ = 0;
  std::uint32_t named_ = 0;
  std::uint32_t verdicts_ = 0;
  std::uint32_t true_verdicts_ = 0;
  std::uint32_t designs_ = 0;
  std::uint32_t designs_told_ = 0;
  std::uint32_t network_for_rank_ = 0;
};

}  // namespace paceline::tools
