// The results of a sweep: a file (JSON, schema 1), a table of runs (CSV), a table of points for the
// terminal. Holds no wall-clock time, host or speed: the same sweep gives the same bytes with any
// number of jobs or machines.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/run_result.h"
#include "control/sweep/plan.h"

namespace paceline::sweep {

inline constexpr std::uint32_t kSweepSchema = 1;
inline constexpr std::string_view kSweepKind = "paceline sweep";

// The part of a run's result that is kept: half a kilobyte.
struct Run {
  experiment::MetricValues metrics;
  std::uint64_t messages = 0;
  std::uint64_t completed = 0;
  std::uint64_t trace_hash = 0;
  experiment::RunStatus status = experiment::RunStatus::ok;
};

struct Results {
  Plan plan;
  std::string version;
  std::string command;
  std::vector<Run> runs;                       // repetition by repetition, point by point
  std::map<std::size_t, std::string> reasons;  // of runs that are not ok, by their place in `runs`

  const Run& run(std::size_t point, std::uint32_t repetition) const {
    return runs[repetition * plan.points() + point];
  }
};

// Mean and Student's interval at 95 % over the repetitions that are ok; unfinished ones count, too,
// if the metric does not need completion. NaN: without a repetition; the interval without two.
struct PointValue {
  double mean = 0;
  double low = 0;
  double high = 0;
};
PointValue value_of(const Results& results, std::size_t point, experiment::Metric metric);

// The metrics that apply to at least one run, in the order of the metric table.
std::vector<experiment::Metric> metrics_of(const Results& results);
// The subset of metrics_of() that brief tables show.
std::vector<experiment::Metric> headlines_of(const Results& results);

// Takes a text piece by piece: the text of a million runs is never in memory as a whole.
using Write = std::function<void(std::string_view)>;
void write_json(const Results& results, const Write& write);
void write_csv(const Results& results, const Write& write);

// The terminal's table. Columns: keys and headline metrics. A row: a point's means with units.
std::vector<std::string> table_columns(const Results& results);
std::vector<std::string> table_row(const Results& results, std::size_t point);

}  // namespace paceline::sweep
