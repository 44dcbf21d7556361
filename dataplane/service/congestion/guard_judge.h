// The guard of a NIC: compares its worker's counters with limits, look by look. Pure: it is fed
// with sums since the start and decides when a limit is exceeded. Three looks in a row that break
// the same rule, or one that is ten times beyond it, are a trip.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "dataplane/service/protocol/guard_limits.h"

namespace paceline::service {

// Sums since the start of the service.
struct GuardSample {
  std::uint64_t at_ns = 0;
  std::uint64_t data_packets = 0;  // sent, retransmissions included
  std::uint64_t retransmitted_packets = 0;
  std::uint64_t paused_ns = 0;
  std::uint64_t stalled_ns = 0;
  std::uint64_t stopped_ns = 0;  // the host stood still: no stall of the network's
  std::uint64_t dropped_packets = 0;
};

// The judge does not set `quarantined`: the engine reports a plug-in that is no longer called.
enum class GuardRule : std::uint8_t { retransmitted, paused, stalled, dropped, quarantined, count };
std::string_view guard_rule_name(GuardRule rule);

struct GuardTrip {
  GuardRule rule{};
  double figure = 0;
  double limit = 0;
};

class GuardJudge {
 public:
  static constexpr unsigned kLooksInARow = 3;
  static constexpr double kAtOnce = 10;

  // Other parameters are in force: earlier counts are not evidence against them.
  void begin(const GuardSample& now) {
    last_ = now;
    strikes_ = {};
    known_ = true;
  }
  // The first look is only a base for later ones. A look at unchanged figures is ignored. After a
  // trip the rule's count starts again.
  std::optional<GuardTrip> look(const GuardSample& now, const GuardLimits& limits);
  // The last look broke no rule.
  bool calm() const { return strikes_ == decltype(strikes_){}; }
  // Looks in a row that broke this rule.
  unsigned strikes(GuardRule rule) const { return strikes_[static_cast<std::size_t>(rule)]; }

 private:
  GuardSample last_{};
  bool known_ = false;
  std::array<unsigned, static_cast<std::size_t>(GuardRule::count)> strikes_{};
};

}  // namespace paceline::service
