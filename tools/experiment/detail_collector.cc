#include "tools/experiment/detail_collector.h"

#include <utility>

namespace paceline::tools {

DetailCollector::DetailCollector(const config::Experiment& experiment)
    : arms_(experiment.arms.size()) {
  for (const config::Scenario& scenario : experiment.scenarios) {
    for (const config::Arm& arm : experiment.arms) {
      experiment::ArmDetail detail;
      detail.scenario = scenario.name;
      detail.arm = arm.name;
      details_.push_back(std::move(detail));
    }
  }
}

void DetailCollector::add(std::uint32_t scenario, std::uint32_t arm,
                          const experiment::Distribution& distribution,
                          experiment::TimeSeries series) {
  experiment::ArmDetail& detail = details_.at(scenario * arms_ + arm);
  detail.distribution.merge(distribution);
  if (series.size() != 0) detail.series = std::move(series);
}

experiment::Detail DetailCollector::finish(std::string file,
                                           std::vector<std::string> overrides) const {
  experiment::Detail out;
  out.file = std::move(file);
  out.overrides = std::move(overrides);
  for (const experiment::ArmDetail& detail : details_) {
    if (detail.distribution.runs != 0 || detail.series.size() != 0) {
      out.arms.push_back(experiment::figures_of(detail));
    }
  }
  return out;
}

}  // namespace paceline::tools
