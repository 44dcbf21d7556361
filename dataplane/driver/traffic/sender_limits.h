// What held back the senders of a host, by collective: the time that their congestion contexts
// spent under each cc::Limiter while messages of the collective were in progress. Messages that
// share a context each count all of that time.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <unordered_map>

#include "cc/interface/decision.h"

namespace paceline {

class SenderLimits {
 public:
  using Times = std::array<std::int64_t, cc::kLimiters>;  // ps, by cc::Limiter

  // `context`: times of the message's context until now.
  void begin(std::uint32_t message, const Times& context) { under_way_[message] = context; }
  void end(std::uint32_t message, std::uint32_t collective, const Times& context);

  // By MessagePlan::collectives, those with messages that ended.
  const std::map<std::uint32_t, Times>& by_collective() const { return by_collective_; }

 private:
  std::unordered_map<std::uint32_t, Times> under_way_;  // by message; never iterated
  std::map<std::uint32_t, Times> by_collective_;
};

}  // namespace paceline
