#include "control/league/cell.h"

#include <algorithm>
#include <cmath>

#include "control/experiment/analysis/statistics.h"
#include "control/experiment/text/number_text.h"

namespace paceline::league {

namespace {

using experiment::RunStatus;
using experiment::Signal;

constexpr double kPicosPerMicro = 1e6;

Summary summary_of(std::vector<double> values, double confidence) {
  Summary out;
  std::vector<double> known;
  for (const double v : values) {
    if (!std::isnan(v)) known.push_back(v);
  }
  // A mean over some repetitions would not be comparable with those of other entries.
  if (known.size() == values.size() && !known.empty()) {
    const experiment::MeanEstimate mean = experiment::t_interval(known, confidence);
    double sum = 0;
    for (const double v : known) sum += v;
    out.mean = experiment::rounded(sum / static_cast<double>(known.size()));
    out.low = experiment::rounded(mean.interval.low, experiment::kFigureDigits);
    out.high = experiment::rounded(mean.interval.high, experiment::kFigureDigits);
  }
  out.values = std::move(values);
  return out;
}

}  // namespace

Course course_of(const experiment::TimeSeries& series) {
  Course out;
  const std::size_t n = series.size();
  if (n == 0) return out;
  const std::size_t fold = (n + Course::kPoints - 1) / Course::kPoints;
  const double interval = static_cast<double>(series.interval.count) / kPicosPerMicro;
  out.interval_us = interval * static_cast<double>(fold);
  out.end_us = static_cast<double>(series.end.count) / kPicosPerMicro;
  bool held = false;
  for (std::size_t i = 0; i < n; i += fold) {
    std::uint64_t queue = 0;
    double bytes = 0;
    double paused = 0;
    for (std::size_t k = i; k < std::min(n, i + fold); ++k) {
      queue = std::max(queue, series[Signal::deepest_queue][k]);
      bytes += static_cast<double>(series[Signal::delivered][k]);
      paused += static_cast<double>(series[Signal::paused][k]) / kPicosPerMicro;
    }
    const double begin = interval * static_cast<double>(i);
    const double lasts = std::min(out.end_us - begin, out.interval_us);
    out.queue_bytes.push_back(queue);
    out.rate_gbps.push_back(lasts > 0 ? bytes * 8 / (lasts * 1e3) : 0);
    out.paused_us.push_back(paused);
    held = held || paused > 0;
  }
  if (!held) out.paused_us.clear();
  return out;
}

void round_run(Run& run) {
  constexpr int kChartDigits = 4;
  for (const MeasureSpec& spec : measure_table()) {
    run.measures[spec.measure] = experiment::rounded(run.measures[spec.measure]);
  }
  run.course.interval_us = experiment::rounded(run.course.interval_us);
  run.course.end_us = experiment::rounded(run.course.end_us);
  for (double& v : run.course.rate_gbps) v = experiment::rounded(v, kChartDigits);
  for (double& v : run.course.paused_us) v = experiment::rounded(v, kChartDigits);
}

std::vector<Cell> cells_of(const Plan& plan, const std::vector<Run>& runs) {
  std::vector<Cell> cells(plan.cells.size());
  for (std::size_t c = 0; c < cells.size(); ++c) {
    Cell& cell = cells[c];
    const auto first = runs.begin() + static_cast<std::ptrdiff_t>(c * plan.repetitions);
    for (auto run = first; run != first + plan.repetitions; ++run) {
      if (run->status > cell.status) {
        cell.status = run->status;
        cell.reason = run->reason;
      }
      cell.trace_hashes.push_back(run->trace_hash);
    }
    cell.messages = first->messages;
    cell.course = first->course;
    for (const MeasureSpec& spec : measure_table()) {
      std::vector<double> values;
      for (auto run = first; run != first + plan.repetitions; ++run) {
        const double v = run->measures[spec.measure];
        values.push_back(run->status == RunStatus::ok ? v : experiment::kUndefined);
      }
      cell.measures[index_of(spec.measure)] = summary_of(std::move(values), plan.confidence);
    }
  }
  return cells;
}

}  // namespace paceline::league
