// Finds NICs on which a plug-in was quarantined between two samples, by their counters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "control/daemon/telemetry/sampler.h"

namespace paceline::daemon {

class QuarantineWatch {
 public:
  // The service is new: older quarantines are in its own log, and in its guard's list.
  void begin(const Sampler& sampler);
  // Names of NICs.
  std::vector<std::string> look(const Sampler& sampler);

 private:
  std::vector<std::optional<std::uint64_t>> counts_;  // by NIC, at the last look
  std::optional<std::size_t> series_;
};

}  // namespace paceline::daemon
