// One run of one scenario: workload and world put together, and what came out. Shared by
// `paceline emulate` and `paceline ab`.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/experiment/detail.h"
#include "control/experiment/run_result.h"
#include "dataplane/config/scenario.h"
#include "dataplane/config/toml/diagnostics.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "dataplane/driver/virtual/world_probes.h"
#include "dataplane/telemetry/counters.h"
#include "tools/run/job_report.h"
#include "tools/run/rail_traffic.h"
#include "tools/workload/workload.h"

namespace paceline::tools {

// A scenario with the files it names read once.
struct PreparedScenario {
  config::Scenario scenario;
  workload::WorkloadInputs inputs;
};

config::Read<PreparedScenario> prepare(config::Scenario scenario);

// One message as it went, in the order of the plan; for a relayed one, its whole way.
struct FlowRow {
  std::uint32_t src = 0;  // as the scenario's files number hosts
  std::uint32_t dst = 0;
  std::uint32_t message = 0;  // of the plan; where one is relayed, its last part
  std::uint64_t bytes = 0;
  Picos start{0};
  Picos fct{-1};  // negative: not completed
  Picos ideal{0};
  bool started = false;
  bool failed = false;
};

// Depth of switch queues, exact: the deepest that any port was, where, and the time-weighted mean
// of the port whose mean is greatest.
struct QueueDepths {
  std::uint64_t max_bytes = 0;
  std::string deepest_port;  // "leaf3 to spine1", "#2" behind it for a parallel link; empty: none
  double mean_bytes = 0;
};

struct RunControl {
  bool check_invariants = false;
  bool exact_departures = false;
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double share_done)> progress;
  bool series = false;  // also record ScenarioRun::series
  std::vector<LinkTapping> taps;
  std::uint32_t threads = 1;  // to share one run; the result is the same
  RealTimeOptions real_time;  // with a clock: not in virtual time
  // Looks at the world every sample_interval, beside `series`, since only one series can be asked
  // for.
  Picos sample_interval = kNever;
  std::function<void(VirtualWorld&, Picos)> sample;
  // Looks at the world when the run is over.
  std::function<void(VirtualWorld&)> finished;
};

struct ScenarioRun {
  RunEnd end = RunEnd::completed;
  experiment::RunResult result;  // scenario, seed, metrics, status; arm left to the caller
  std::vector<FlowRow> flows;
  telemetry::EngineCounters counters{};  // summed over the hosts
  fabric::NetworkStats network{};
  RailTraffic rails;
  QueueDepths queues;
  experiment::Distribution distribution;  // of this one run; of a failed one empty, with runs = 0
  experiment::TimeSeries series;          // repetition left to the caller; empty unless asked for
  ParallelUse thread_use;                 // of several threads; no result
  std::string one_thread_because;         // they were asked for and could not be used
  RealTimeReport real_time;               // of a run in real time
  ProbeReport probes;                     // of probing.enabled = true
  std::optional<JobReport> job;           // workload.kind = "job"
  workload::JobPlan job_plan;             // of it, without its messages
};

// Runs the scenario with `seed` under `cc`. Throws std::invalid_argument when the scenario cannot
// be built (what no reader can see: a plan too large, hosts without a path).
ScenarioRun run_scenario(const PreparedScenario& prepared, const config::CcConfig& cc,
                         std::uint64_t seed, const RunControl& control);

}  // namespace paceline::tools
