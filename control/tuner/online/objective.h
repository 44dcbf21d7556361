// What a block of time under one parameter set is worth, in parts, and how two blocks compare:
//
//   J = log(goodput / offered) - .5 log(p99 slowdown of messages up to 64 KiB)
//       - .5 log(p99 time of collective phases over ideal) - .1 log(cycles per packet)
//
// A host does not see the phases of a collective. Where nobody tells them, the p99 slowdown of the
// messages beyond 64 KiB stands for them: those of a phase are alike, and the last one ends it.
#pragma once

#include <optional>

#include "control/tuner/online/window.h"

namespace paceline::tuner::online {

struct ObjectiveParts {
  std::optional<double> goodput;  // log(goodput / offered); nothing: nothing was offered
  std::optional<double> small;    // log of the slowdown's p99
  std::optional<double> large;    // of phases, or of messages beyond 64 KiB
  std::optional<double> cycles;   // log(cycles per packet)
  bool stalled = false;           // messages were begun, and none was completed
};

// What log(goodput / offered) is at least: a block that completes nothing is bad, not infinitely.
inline constexpr double kLeastGoodputShare = 1e-3;

ObjectiveParts objective_parts(const Window& block);

// J of `b` less J of `a`, over the parts that both have. A part that only `a` has because `b`
// stalled is not forgotten: the goodput of `b` is then the least there is. Nothing where the blocks
// have no part in common.
std::optional<double> objective_difference(const ObjectiveParts& a, const ObjectiveParts& b);

// J itself, absent parts left out; nothing where all are.
std::optional<double> objective(const ObjectiveParts& parts);

}  // namespace paceline::tuner::online
