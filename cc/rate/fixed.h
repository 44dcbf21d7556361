// A constant rate: the yardstick (what does the fabric do without any reaction?) and the tool of
// tests that need a sender with known behaviour. It uses no congestion signal at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "cc/interface/algorithm.h"

namespace paceline::cc {

class Fixed {
 public:
  enum Param : std::size_t { kRateMbps, kWindowBytes, kParams };

  struct State {};  // nothing to remember

  struct Params {
    Rate rate{};
    std::uint64_t window_bytes = kUnlimited;
  };

  // values: in the order of Param, already checked by resolve_params.
  static Params make_params(std::span<const double> values, const PortFacts& facts);
  static void on_event(State& state, const Params& params, const Event& event, Decision& decision);
  static AlgorithmInfo info();
};

}  // namespace paceline::cc
