// Explains in sentences with figures what limited a connection: a pure function over the samples of
// one queue pair. One finding per sentence. First the limiters of its congestion context, by share
// of the time; then causes of lost time, most costly first: time-outs, receiver not ready,
// retransmissions, congestion notifications, queueing, the fallback algorithm.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cc/interface/decision.h"
#include "control/daemon/telemetry/queue_pair_history.h"

namespace paceline::daemon {

struct Finding {
  std::string what;      // a word for programs: "limited_by_grant", "timeouts", "queueing", ...
  double share = 0;      // of the examined time, if it is a share; else 0
  std::string sentence;  // for people
};

struct Explanation {
  double seconds = 0;  // that were looked at
  double gbps = 0;     // payload sent, first transmissions
  double rx_gbps = 0;
  std::array<double, cc::kLimiters> shares{};  // of the time, by cc::Limiter
  std::string verdict;                         // the one sentence that says most
  std::vector<Finding> findings;
};

// Covers the last `seconds` of the samples, which are in order of time. `link_bps`: rate of the
// NIC; 0: unknown.
Explanation explain(std::span<const QueuePairLook> looks, double seconds, std::uint64_t link_bps);

}  // namespace paceline::daemon
