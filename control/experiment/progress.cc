#include "control/experiment/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <stdexcept>

namespace paceline::experiment {

Progress::Progress(std::vector<WorkUnit> units, unsigned jobs) : jobs_(std::max(1U, jobs)) {
  std::uint32_t groups = 0;
  for (const WorkUnit& work : units) {
    if (!(work.prior_cost > 0) || std::isinf(work.prior_cost)) {
      throw std::invalid_argument("the prior cost of a unit of work must be positive and finite");
    }
    groups = std::max(groups, work.group + 1);
    units_.push_back({work, State::waiting, 0});
  }
  groups_.resize(groups);
}

void Progress::start(std::size_t unit, double now_seconds) {
  Unit& started = units_.at(unit);
  if (started.state != State::waiting) throw std::logic_error("a unit of work started twice");
  started.state = State::running;
  started.started_s = now_seconds;
}

void Progress::finish(std::size_t unit, double now_seconds) {
  Unit& finished = units_.at(unit);
  if (finished.state != State::running) {
    throw std::logic_error("a unit of work finished that was not running");
  }
  finished.state = State::done;
  const double seconds = std::max(0.0, now_seconds - finished.started_s);
  Group& group = groups_[finished.work.group];
  group.seconds += seconds;
  ++group.finished;
  ++done_;
  seconds_done_ += seconds;
  prior_done_ += finished.work.prior_cost;
}

void Progress::set_jobs(unsigned jobs) { jobs_ = std::max(1U, jobs); }

double Progress::expected_seconds(const Unit& unit) const {
  const Group& group = groups_[unit.work.group];
  if (group.finished > 0) return group.seconds / group.finished;
  return unit.work.prior_cost * seconds_done_ / prior_done_;
}

ProgressEstimate Progress::estimate(double now_seconds) const {
  ProgressEstimate estimate;
  estimate.done = done_;
  estimate.total = units_.size();
  if (done_ == units_.size()) {
    estimate.fraction = 1;
    return estimate;
  }
  if (done_ == 0) {
    estimate.seconds_left = std::numeric_limits<double>::quiet_NaN();
    return estimate;
  }
  std::vector<double> busy_until(jobs_, 0.0);  // seconds from now
  std::size_t worker = 0;
  double spent = seconds_done_;
  double left = 0;
  for (const Unit& unit : units_) {
    if (unit.state != State::running) continue;
    const double age = std::max(0.0, now_seconds - unit.started_s);
    // A unit that has outlived its expectation gets a tenth of it more, so that time left stays >
    // 0.
    const double expected = expected_seconds(unit);
    const double rest = std::max(expected - age, expected / 10);
    busy_until[worker++ % jobs_] += rest;
    spent += age;
    left += rest;
  }
  // A heap whose first element is the worker that is free first.
  std::make_heap(busy_until.begin(), busy_until.end(), std::greater<>());
  for (const Unit& unit : units_) {
    if (unit.state != State::waiting) continue;
    const double expected = expected_seconds(unit);
    std::pop_heap(busy_until.begin(), busy_until.end(), std::greater<>());
    busy_until.back() += expected;
    std::push_heap(busy_until.begin(), busy_until.end(), std::greater<>());
    left += expected;
  }
  estimate.seconds_left = *std::max_element(busy_until.begin(), busy_until.end());
  estimate.fraction = spent + left > 0 ? spent / (spent + left) : 0;
  return estimate;
}

std::string format_duration(double seconds) {
  if (!std::isfinite(seconds)) return "?";
  const auto whole = static_cast<long long>(std::llround(std::max(0.0, seconds)));
  if (whole < 60) return fmt::format("{} s", whole);
  if (whole < 3600) return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  return fmt::format("{} h {:02} min", whole / 3600, whole % 3600 / 60);
}

}  // namespace paceline::experiment
