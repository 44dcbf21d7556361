// The objective J of a block of time under one parameter set, in parts, and comparison of blocks:
//
//   J = log(goodput / offered) - 0.5 log(p99 slowdown of messages up to 64 KiB)
//       - 0.5 log(p99 time of collective phases over ideal) - 0.1 log(cycles per packet)
//
// A host does not see the phases of a collective. If they are not reported, the p99 slowdown of
// messages beyond 64 KiB takes their place: messages of a phase are alike, and the last one ends
// it.
#pragma once

#include <optional>

#include "control/tuner/online/observation/window.h"

namespace paceline::tuner::online {

struct ObjectiveParts {
  std::optional<double> goodput;  // log(goodput / offered); nothing: nothing was offered
  std::optional<double> small;    // log of the slowdown's p99
  std::optional<double> large;    // of phases, or of messages beyond 64 KiB
  std::optional<double> cycles;   // log(cycles per packet)
  bool stalled = false;           // messages were begun, and none was completed
};

// Lower bound of log(goodput / offered): a block that completes nothing is bad, but not infinitely.
inline constexpr double kLeastGoodputShare = 1e-3;

ObjectiveParts objective_parts(const Window& block);

// J of `b` less J of `a`, over the parts that both have. A part that only `a` has because `b`
// stalled is not forgotten: the goodput of `b` is then the least there is. Nothing if the blocks
// have no part in common.
std::optional<double> objective_difference(const ObjectiveParts& a, const ObjectiveParts& b);

// J itself, absent parts left out; nothing where all are.
std::optional<double> objective(const ObjectiveParts& parts);

}  // namespace paceline::tuner::online
