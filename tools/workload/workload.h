// Turns a scenario into what its hosts will send: reads the files that it names, once, and makes a
// plan for each seed.
//
//   Scenario s = ...;
//   auto inputs = load_inputs(s);                       // topology, flow list, CDF; fills s.fabric
//   auto plan = make_plan(s, inputs.value, seed);       // per repetition
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/traffic/message_plan.h"
#include "tools/workload/cdf.h"
#include "tools/workload/files/hpcc_format.h"
#include "tools/workload/job_plans/job_plan.h"
#include "tools/workload/placement.h"
#include "tools/workload/schedules/schedule.h"

namespace paceline::workload {

struct WorkloadInputs {
  NodeNumbers numbers;               // how the files number the nodes
  std::vector<Rate> host_rates;      // of each host's links together
  std::vector<HpccFlow> flows;       // workload.kind = "flows"
  MessagePlan matrix;                // workload.kind = "htsim"
  Job job;                           // workload.kind = "job"
  std::optional<Schedule> schedule;  // workload.job.schedule_file
  Cdf sizes;                         // workload.kind = "open_loop"
  Placement placement;               // workload.placement = "file"
  std::vector<std::string> warnings;
};

// Reads the files that the scenario names. With a topology file it sets fabric.hosts, switches and
// links, and fabric.rate and delay to those of host 0's link. All errors, each with file, line and
// column.
config::Read<WorkloadInputs> load_inputs(config::Scenario& scenario);

// The NIC of each rank.
Placement placement_of(const config::Scenario& scenario, const WorkloadInputs& inputs,
                       std::uint64_t seed);

// The plan for a seed, sorted by (start, src, dst), between NICs: its ranks are placed. Errors if
// the scenario asks for the impossible (a receiver that the topology file does not have, more
// messages than fit). `ideal` of the collectives is left 0: the world that runs the plan sets it.
config::Read<MessagePlan> make_plan(const config::Scenario& scenario, const WorkloadInputs& inputs,
                                    std::uint64_t seed);

// The same for a job, with the messages of each of its ops and calls. Ranks are placed.
config::Read<JobPlan> make_job_plan(const config::Scenario& scenario, const WorkloadInputs& inputs,
                                    std::uint64_t seed);

inline constexpr std::uint64_t kMostMessages = 1ULL << 24;

}  // namespace paceline::workload
