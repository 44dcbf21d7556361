// Measurements: runs, one line of text each, so that an interrupted league can be resumed; and
// cells, the results of a scenario under an entry over all repetitions.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/experiment/detail.h"
#include "control/experiment/run_result.h"
#include "control/experiment/text/json_writer.h"
#include "control/league/metrics.h"
#include "control/league/plan/plan.h"

namespace paceline::league {

// Queue and rate of one run over time, folded to at most kPoints intervals.
struct Course {
  static constexpr std::size_t kPoints = 128;
  double interval_us = 0;  // the last one ends at end_us
  double end_us = 0;
  std::vector<std::uint64_t> queue_bytes;  // in the fullest switch port, greatest sample
  std::vector<double> rate_gbps;           // payload, all hosts
  std::vector<double> paused_us;           // summed over ports and classes; empty: never
};
Course course_of(const experiment::TimeSeries& series);
// Writes `course` as a member of the JSON object that is open.
void write_course(experiment::JsonWriter& json, const Course& course);

struct Run {
  std::string scenario;
  std::string entry;
  std::uint32_t repetition = 0;
  std::uint64_t seed = 0;
  experiment::RunStatus status = experiment::RunStatus::ok;
  std::string reason;  // why `status` is not ok
  std::uint64_t messages = 0;
  std::uint64_t trace_hash = 0;
  Measures measures;  // rounded as in files, so that a run read back is equal
  Course course;      // of repetition 0
};

// Rounds measures and course to the digits that files have.
void round_run(Run& run);

// One line of JSON without its end.
std::string run_line(const Run& run);
// Nothing if the line is not a run.
std::optional<Run> parse_run_line(std::string_view line);

struct Summary {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> values;  // by repetition; NaN where it does not apply
  double mean = kNone;
  double low = kNone;  // NaN: fewer than two values
  double high = kNone;
};

struct Cell {
  experiment::RunStatus status = experiment::RunStatus::ok;  // the worst of its runs
  std::string reason;                                        // of the first run with that status
  std::uint64_t messages = 0;                                // of repetition 0
  std::vector<std::uint64_t> trace_hashes;                   // by repetition
  std::array<Summary, kMeasures> measures;
  Course course;

  bool finished() const { return status == experiment::RunStatus::ok; }
  const Summary& operator[](Measure measure) const { return measures[index_of(measure)]; }
};

// Cells in the order of plan.cells; `runs` has one element per cell and repetition, in the order
// cell by cell, repetition by repetition.
std::vector<Cell> cells_of(const Plan& plan, const std::vector<Run>& runs);

}  // namespace paceline::league
