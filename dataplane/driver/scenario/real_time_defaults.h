// Configuration of an engine in real time where it differs from virtual time: polls find bursts,
// and come late.
#pragma once

#include "dataplane/driver/scenario/plugin_load.h"
#include "dataplane/transport/core/engine_config.h"

namespace paceline {

inline void apply_real_time_defaults(transport::EngineConfig& config) {
  config.coalesce_acks = true;
  config.answers_last = true;
  config.receive_bursts = 1;
  config.spare_queue_pairs = 1024;  // programs come and go: a MB of memory at most
  config.pacing_catch_up = picos_from_micros(200);
  config.plugin_clock = plugin_clock();
}

}  // namespace paceline
