// [tuner] of the configuration as the tuner's own options, in windows of the telemetry's interval.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "control/daemon/config/daemon_config.h"
#include "control/tuner/online/tuner.h"

namespace paceline::daemon {

tuner::online::TunerOptions tuner_options(const DaemonConfig& config, std::uint64_t seed);
// Why the tuner refuses these options; empty: it accepts them.
std::vector<std::string> tuner_problems(const DaemonConfig& config);

}  // namespace paceline::daemon
