// Puts together the detail of an experiment from its runs, in whatever order they finish. Not
// thread-safe: the caller holds its lock.
#pragma once

#include <string>
#include <vector>

#include "control/experiment/detail.h"
#include "dataplane/config/scenario.h"

namespace paceline::tools {

class DetailCollector {
 public:
  explicit DetailCollector(const config::Experiment& experiment);

  // Whether this run is the one of its scenario and arm whose course is recorded.
  static bool wants_series(std::uint32_t repetition) { return repetition == 0; }
  // Adds one run; its series is empty unless it was recorded.
  void add(std::uint32_t scenario, std::uint32_t arm, const experiment::Distribution& distribution,
           experiment::TimeSeries series);

  // `file` and `overrides`: of the command line. Combinations without any run are left out.
  experiment::Detail finish(std::string file, std::vector<std::string> overrides) const;

 private:
  std::size_t arms_;
  std::vector<experiment::ArmDetail> details_;  // scenario x arms + arm
};

}  // namespace paceline::tools
