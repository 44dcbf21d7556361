// How large the limits of a trial's guard may be: the service refuses more, and plan files are read
// by the same numbers, so that a plan is not found out when its experiment begins.
#pragma once

namespace paceline::config {

inline constexpr double kMostGuardShare = 1;
inline constexpr double kMostGuardPackets = 1e9;  // in a look
inline constexpr double kMostGuardStallMs = 100;  // a look: no more time can be lost in it

}  // namespace paceline::config
