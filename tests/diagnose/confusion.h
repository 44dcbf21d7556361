// What was said against what was true.
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
  // Faults count; what is so by design counts as none.
  void add(std::optional<diagnosis::Cause> truth, const std::string& culprit,
           const std::vector<diagnosis::Verdict>& said);

  // Of the fault verdicts, those that are true; of the faults, those found; of those found, the
  // ones whose culprit was named.
  double precision() const;
  double recall() const;
  double named() const;
  // Verdicts that blame the network where a rank is slow.
  std::uint32_t network_for_rank() const { return network_for_rank_; }
  // Reports of an incast or a narrow core, of those that there were.
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
