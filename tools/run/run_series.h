// Time series of a run: looks at the fabric and the engines while they work, folded into about 500
// intervals when the run is over. A look changes no result (tests/unit/tools/run_series_test.cc).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "control/experiment/detail.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/virtual/virtual_world.h"

namespace paceline::tools {

// The length of a run is not known before its end. Looks start close together; whenever kMaxLooks
// are held, every second one is dropped and the distance doubles. So a run of any length ends with
// kMaxLooks / 2 to kMaxLooks evenly spaced looks, and their cost is bounded.
class SeriesRecorder {
 public:
  static constexpr std::size_t kMaxLooks = 4096;
  static constexpr std::size_t kIntervals = 512;

  explicit SeriesRecorder(Picos first_distance)
      : first_(first_distance), step_(first_distance), next_(first_distance) {}

  Picos first_distance() const { return first_; }
  // From the world's sample hook, which calls at multiples of the first distance.
  void look(VirtualWorld& world, Picos at);
  // After the run: a last look at its end, then the whole as a series (repetition and seed are left
  // to the caller). Empty for a run that took no time.
  experiment::TimeSeries finish(VirtualWorld& world);

 private:
  static constexpr std::size_t kTotals = 6;  // signals that only grow, in the order of the table
  struct Look {
    Picos at{0};
    std::uint64_t deepest = 0;
    std::uint64_t queued = 0;
    std::array<std::uint64_t, kTotals> totals{};
  };
  Look look_at(VirtualWorld& world, Picos at);

  Picos first_;
  Picos step_;
  Picos next_;  // looks before it are skipped
  std::vector<Look> looks_;
  std::vector<std::uint32_t> switch_links_;  // directed links with a queue; found at the first look
};

// The distance to begin with: a fraction of the time that the busiest host needs at line rate.
Picos first_look_distance(const config::Scenario& scenario, const MessagePlan& plan);

}  // namespace paceline::tools
