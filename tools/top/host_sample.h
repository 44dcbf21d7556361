// One look at everything that a running service counts: its telemetry segment, by names. Looking
// costs the service nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "dataplane/telemetry/message_figures.h"
#include "dataplane/telemetry/segment.h"

namespace paceline::tools {

struct NicLook {
  std::string name;
  std::uint64_t rate_bps = 0;  // of the link; 0: unlimited
  std::string algorithm;
  std::uint32_t arm = 0;                        // of a trial; 0: the champion
  std::uint32_t epoch = 0;                      // 0: no experiment
  std::uint32_t guard = 0;                      // not 0: tripped
  std::uint64_t at_ns = 0;                      // the worker's clock
  std::map<std::string, std::uint64_t> values;  // series by name
  telemetry::MessagesBySize messages{};
  std::vector<telemetry::QueuePairRecord> queue_pairs;

  // 0 where the service does not have the series.
  std::uint64_t value(const std::string& series) const {
    const auto at = values.find(series);
    return at == values.end() ? 0 : at->second;
  }
};

struct HostSample {
  std::vector<NicLook> nics;
};

}  // namespace paceline::tools
