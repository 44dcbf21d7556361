// A world in virtual time as a plant of the online tuner: continuous traffic, observed in windows,
// under parameters that change while it runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control/tuner/online/tuner.h"
#include "dataplane/config/scenario.h"
#include "dataplane/driver/virtual/virtual_world.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {

struct TunerWorldOptions {
  Picos window = picos_from_micros(100);  // of the tuner: 10 ms in life
  std::uint32_t block_windows = 20;
  // After a change: alpha and rates of before live on for milliseconds.
  std::uint32_t wash_windows() const { return block_windows / 4; }
  // The scenario's workload restarts at this interval, each time with a seed of its own; 0: traffic
  // in an open loop, which needs no repetition.
  Picos wave{0};
  double queue_share = 0.5;  // of the switch's buffer, that the p99 of a last hop's queue may take
  const std::atomic<bool>* stop = nullptr;
  std::function<void(double share_done)> progress;
};

// The tuner's options for such a world: its times scaled from 10 ms to the windows here.
tuner::online::TunerOptions tuner_options(const TunerWorldOptions& options,
                                          const PreparedScenario& prepared, std::uint64_t seed);

// The workload of `prepared` for this long. Throws std::invalid_argument if it cannot be made.
MessagePlan endless_plan(const PreparedScenario& prepared, const TunerWorldOptions& options,
                         Picos length, std::uint64_t seed);

// The table of [cc] with these values of all parameters.
config::CcConfig config_of(const config::CcConfig& cc, const cc::AlgorithmInfo& info,
                           const std::vector<double>& values);

// One parameter set held for `blocks` blocks.
struct FixedRun {
  std::vector<double> objective;  // J by block
  tuner::online::Signature signature;
  std::string breach;          // the first constraint broken, in words; empty: none
  std::uint32_t breaches = 0;  // blocks with one
  bool finished = false;
};
FixedRun run_fixed(const PreparedScenario& prepared, const config::CcConfig& cc,
                   const TunerWorldOptions& options, std::uint32_t blocks, std::uint64_t seed);

// The tuner at work until it has finished `pairs` pairs.
struct TunedRun {
  std::vector<tuner::online::JournalEntry> journal;
  tuner::online::TunerStatus status;
  std::uint64_t windows = 0;
  // The longest time for which windows in a row, under parameters that the tuner chose, broke a
  // constraint.
  std::int64_t longest_breach_ns = 0;
  bool finished = false;
};
struct TunedRunHooks {
  // Before the tuner sees it: may change the window or its surroundings.
  std::function<void(tuner::online::Window&, tuner::online::Surroundings&)> window;
};
TunedRun run_tuned(const PreparedScenario& prepared, const cc::AlgorithmInfo& info,
                   const tuner::online::PresetLibrary& presets, const std::vector<double>& champion,
                   const TunerWorldOptions& options, const tuner::online::TunerOptions& tuner,
                   std::uint32_t pairs, std::uint64_t seed, const TunedRunHooks& hooks = {});

}  // namespace paceline::tools
