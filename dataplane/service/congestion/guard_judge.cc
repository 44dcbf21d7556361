#include "dataplane/service/congestion/guard_judge.h"

#include <algorithm>

namespace paceline::service {

namespace {

constexpr std::size_t kRules = static_cast<std::size_t>(GuardRule::count);

struct Finding {
  double figure = 0;
  double limit = 0;
  bool broken = false;
  bool far_beyond = false;
};

// Counters only grow; one that shrinks belongs to another service and tells nothing.
double grown(std::uint64_t now, std::uint64_t before) {
  return now > before ? static_cast<double>(now - before) : 0;
}

std::array<Finding, kRules> findings(const GuardSample& now, const GuardSample& last,
                                     const GuardLimits& limits) {
  constexpr double kAtOnce = GuardJudge::kAtOnce;
  std::array<Finding, kRules> out;
  const auto at = [&](GuardRule rule) -> Finding& { return out[static_cast<std::size_t>(rule)]; };

  const double again = grown(now.retransmitted_packets, last.retransmitted_packets);
  const double sent = std::max(grown(now.data_packets, last.data_packets), again);
  Finding& retransmitted = at(GuardRule::retransmitted);
  retransmitted.figure = sent > 0 ? again / sent : 0;
  retransmitted.limit = limits.retransmitted_share;
  retransmitted.broken =
      retransmitted.figure > retransmitted.limit && again > limits.retransmitted_packets;
  retransmitted.far_beyond = retransmitted.figure > kAtOnce * retransmitted.limit &&
                             again > kAtOnce * std::max(limits.retransmitted_packets, 1.0);

  const double span = grown(now.at_ns, last.at_ns);
  Finding& paused = at(GuardRule::paused);
  paused.figure = span > 0 ? grown(now.paused_ns, last.paused_ns) / span : 0;
  paused.limit = limits.pause_share;
  paused.broken = paused.figure > paused.limit;
  paused.far_beyond = paused.figure > kAtOnce * paused.limit;

  const double stopped = grown(now.stopped_ns, last.stopped_ns);
  Finding& stalled = at(GuardRule::stalled);
  stalled.figure = std::max(grown(now.stalled_ns, last.stalled_ns) - stopped, 0.0) * 1e-6;
  stalled.limit = limits.stall_ms;
  stalled.broken = stalled.figure > stalled.limit;
  stalled.far_beyond = stalled.figure > kAtOnce * stalled.limit;

  Finding& dropped = at(GuardRule::dropped);
  dropped.figure = grown(now.dropped_packets, last.dropped_packets);
  dropped.limit = limits.drops_packets;
  dropped.broken = dropped.figure > dropped.limit;
  dropped.far_beyond = dropped.figure > kAtOnce * std::max(dropped.limit, 1.0);

  for (Finding& finding : out) {
    if (finding.limit < 0) finding.broken = finding.far_beyond = false;
  }
  return out;
}

}  // namespace

std::string_view guard_rule_name(GuardRule rule) {
  switch (rule) {
    case GuardRule::retransmitted:
      return "retransmitted_share";
    case GuardRule::paused:
      return "pause_share";
    case GuardRule::stalled:
      return "stall_ms";
    case GuardRule::dropped:
      return "drops_packets";
    case GuardRule::quarantined:
      return "plugin_quarantine";
    case GuardRule::count:
      break;
  }
  return "none";
}

std::optional<GuardTrip> GuardJudge::look(const GuardSample& now, const GuardLimits& limits) {
  if (!known_) {
    begin(now);
    return std::nullopt;
  }
  if (now.at_ns == last_.at_ns) return std::nullopt;  // nothing new was written
  const auto found = findings(now, last_, limits);
  last_ = now;
  std::optional<GuardTrip> trip;
  for (std::size_t r = 0; r < kRules; ++r) {
    if (!found[r].broken) {
      strikes_[r] = 0;
      continue;
    }
    if (++strikes_[r] < kLooksInARow && !found[r].far_beyond) continue;
    strikes_[r] = 0;
    if (!trip) trip = GuardTrip{static_cast<GuardRule>(r), found[r].figure, found[r].limit};
  }
  return trip;
}

}  // namespace paceline::service
