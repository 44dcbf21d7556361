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

// Of one run what results keep: half a kilobyte.
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

// Mean over the repetitions that are ok, and Student's interval at 95 %; NaN where there is none.
struct PointValue {
  double mean = 0;
  double low = 0;
  double high = 0;
};
PointValue value_of(const Results& results, std::size_t point, experiment::Metric metric);

// Those that apply to one of the runs, in the order of the metric table.
std::vector<experiment::Metric> metrics_of(const Results& results);
// Of those the ones that a brief table has.
std::vector<experiment::Metric> headlines_of(const Results& results);

// Texts of a million runs come in pieces.
using Write = std::function<void(std::string_view)>;
void write_json(const Results& results, const Write& write);
void write_csv(const Results& results, const Write& write);

// The terminal's table: keys and headlines; of a point the means, with their units.
std::vector<std::string> table_columns(const Results& results);
std::vector<std::string> table_row(const Results& results, std::size_t point);

}  // namespace paceline::sweep
