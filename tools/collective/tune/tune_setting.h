// How a collective runs: what a tuner chooses.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/config/scenario.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::tools {

struct TuneSetting {
  std::string schedule;
  std::uint32_t chunk_bytes = 0;
  std::uint32_t channels = 1;
  std::uint32_t window = 1;
  std::uint32_t queue_pairs = 1;
  bool planned_ports = false;  // transport.source_ports = "planned"
  friend bool operator==(const TuneSetting&, const TuneSetting&) = default;
};

// The values that are tried, ascending.
struct TuneSpace {
  std::vector<std::uint32_t> chunks{64 << 10, 128 << 10, 256 << 10, 512 << 10,
                                    1 << 20,  2 << 20,   4 << 20};
  std::vector<std::uint32_t> channels{1, 2, 4};
  std::vector<std::uint32_t> windows{2, 4, 8, 16, 32};
  std::vector<std::uint32_t> queue_pairs{1, 2, 4};
  bool ports = false;  // whether source ports are planned
};

// Whether the path of a connection follows from its source port, which is free to choose, and there
// are several.
bool has_ports_to_plan(const config::Scenario& scenario);

// The key of [workload.job] that names the schedule of an operation.
std::string& schedule_key(config::JobConfig& job, workload::CollectiveOp op);

// The settings of the scenario with another schedule.
TuneSetting setting_of(const config::JobConfig& job, std::string schedule);
void apply(const TuneSetting& setting, workload::CollectiveOp op, config::Scenario& scenario);

}  // namespace paceline::tools
