// How far an experiment is and how long it will still take. Knows no clock: the caller passes the
// time. Not thread-safe; the caller that collects finished runs holds the lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace paceline::experiment {

struct WorkUnit {
  std::uint32_t group =
      0;  // units of one group (one scenario under one arm) take about the same time
  double prior_cost = 1;  // > 0, any unit, comparable between groups: for example expected hops
};

struct ProgressEstimate {
  std::size_t done = 0;
  std::size_t total = 0;
  double fraction = 0;      // of the expected work, running units included: 0..1
  double seconds_left = 0;  // NaN while nothing has finished
};

class Progress {
 public:
  // `jobs` units run at a time (at least 1).
  Progress(std::vector<WorkUnit> units, unsigned jobs);

  void start(std::size_t unit, double now_seconds);
  void finish(std::size_t unit, double now_seconds);  // started before; false starts throw

  // More or fewer units run at a time from now on: a machine came, or ended.
  void set_jobs(unsigned jobs);

  // A group with finished units is expected to take their mean; a group without, its prior times
  // the ratio of time to prior of the finished ones. The rest is a list schedule of the remaining
  // units on `jobs` workers in the given order, after the time that the running units are expected
  // to need.
  ProgressEstimate estimate(double now_seconds) const;

 private:
  enum class State : std::uint8_t { waiting, running, done };
  struct Unit {
    WorkUnit work;
    State state = State::waiting;
    double started_s = 0;
  };
  struct Group {
    double seconds = 0;
    std::uint32_t finished = 0;
  };
  double expected_seconds(const Unit& unit) const;

  std::vector<Unit> units_;
  std::vector<Group> groups_;
  unsigned jobs_;
  std::size_t done_ = 0;
  double seconds_done_ = 0;
  double prior_done_ = 0;
};

// "8 s", "2 min 05 s", "1 h 12 min"; "?" for NaN.
std::string format_duration(double seconds);

}  // namespace paceline::experiment
