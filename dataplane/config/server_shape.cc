#include "dataplane/config/server_shape.h"

#include <fmt/format.h>

#include <algorithm>

namespace paceline::config {

std::uint32_t job_ranks(const Scenario& scenario) {
  const std::uint32_t nics = server_shape(scenario.fabric).all_nics();
  const BackgroundConfig& background = scenario.workload.background;
  return background.kind == "none" ? nics : nics - std::min(nics, background.storage_nics);
}

std::string storage_error(const Scenario& scenario) {
  const BackgroundConfig& background = scenario.workload.background;
  if (background.kind == "none" || job_ranks(scenario) >= 2) return "";
  return fmt::format(
      "workload.background.storage_nics = {}: of {} NICs at least two must be left for ranks",
      background.storage_nics, server_shape(scenario.fabric).all_nics());
}

}  // namespace paceline::config
