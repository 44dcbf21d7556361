// Latency and bandwidth of a fabric, from a small and a large ring of all its NICs.
#pragma once

#include <atomic>

#include "dataplane/config/toml/diagnostics.h"
#include "tools/collective/tune/schedule_cost.h"
#include "tools/collective/tune/trial_runner.h"

namespace paceline::tools {

// NVLink is as the scenario says. Errors: a ring that cannot run.
config::Read<SendCost> fit_cost(const TuneGroup& group, const std::atomic<bool>& stop);

}  // namespace paceline::tools
