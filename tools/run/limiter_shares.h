// What held back the senders of a virtual world, as shares of the time in which their congestion
// contexts had something to send.
#pragma once

#include <array>
#include <vector>

#include "cc/interface/decision.h"
#include "dataplane/driver/traffic/sender_limits.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::tools {

// By cc::Limiter; that of `application` is 0. All 0: nothing was sent.
using LimiterShares = std::array<double, cc::kLimiters>;

LimiterShares shares_of(const SenderLimits::Times& times);

// Shares of all NICs together, over the whole run.
LimiterShares limiter_shares(const VirtualWorld& world);

// All NICs together, by MessagePlan::collectives; empty if not recorded (MessagePlan::limits).
std::vector<SenderLimits::Times> collective_limits(const VirtualWorld& world);

}  // namespace paceline::tools
