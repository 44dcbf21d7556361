// The result of one run of an experiment (one scenario under one arm with one seed). Filled by
// the command line from the emulator's report; read by the results file and the analysis. Holds
// nothing that depends on the machine: no wall-clock time, no speed.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string>

#include "control/experiment/metrics.h"
#include "dataplane/base/units.h"

namespace paceline::experiment {

enum class RunStatus : std::uint8_t {
  ok,          // every message completed, or the scenario's stated duration ended (messages then
               // outstanding enter FCT and slowdown with their age at the end, a lower bound)
  unfinished,  // stopped by a limit with messages outstanding: its times are censored
  failed,  // an invariant broke or the run could not be done: says nothing about the arm's speed
};
std::string_view to_text(RunStatus status);  // "ok", "unfinished", "failed"

class MetricValues {
 public:
  MetricValues() { values_.fill(std::numeric_limits<double>::quiet_NaN()); }
  double& operator[](Metric metric) { return values_[index_of(metric)]; }
  double operator[](Metric metric) const { return values_[index_of(metric)]; }

 private:
  std::array<double, kMetricCount> values_;
};

struct RunResult {
  std::string scenario;
  std::string arm;
  std::uint32_t repetition = 0;  // from 0
  std::uint64_t seed = 0;        // of the run: repetition_seed(experiment seed, repetition)
  RunStatus status = RunStatus::ok;
  std::string reason;    // one line, for unfinished and failed runs
  MetricValues metrics;  // infinities are not allowed; NaN = not applicable
  std::uint64_t messages_started = 0;
  std::uint64_t messages_completed = 0;
  std::uint64_t hops = 0;        // link transmissions of one packet
  std::uint64_t events = 0;      // scheduler events
  Picos simulated{0};            // virtual time at the end
  std::uint64_t trace_hash = 0;  // determinism hash: equal inputs give equal hashes on every build
};

}  // namespace paceline::experiment
