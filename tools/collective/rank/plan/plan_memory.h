// The memory of a rank that runs a plan: a range for every arrival, and the bytes that it sends.
// All ranks send from the same pattern, each message from a place that follows from its number, so
// a receiver knows what must arrive.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tools/collective/rank/plan/plan_part.h"

namespace paceline::rank {

struct WrongBytes {
  std::uint64_t count = 0;
  std::uint64_t first = 0;  // of the message, where there is one
  std::uint8_t expected = 0;
  std::uint8_t got = 0;
};

class PlanMemory {
 public:
  static std::uint64_t bytes_of(const PlanPart& part);

  // `memory` has bytes_of(part), all 0. Both must outlive this.
  PlanMemory(const PlanPart& part, std::byte* memory);

  // The position of the bytes of a sent message.
  std::uint64_t source(std::uint32_t message) const;
  WrongBytes check(const PlanArrival& arrival) const;

 private:
  const PlanPart& part_;
  std::byte* memory_;
};

}  // namespace paceline::rank
