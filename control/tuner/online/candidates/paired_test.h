// One candidate against the incumbent, block pair by block pair: when is it known to be better, and
// when is it not worth continuing? The interval is always valid (control/experiment/live): it may
// be asked after every pair. Accepting uses only its lower end, so that a candidate that makes no
// difference is accepted with about half of alpha.
#pragma once

#include <cstdint>

#include "control/experiment/analysis/statistics.h"

namespace paceline::tuner::online {

struct TestOptions {
  double alpha = 0.05;
  std::uint32_t least_pairs = 6;  // the spread is not known before
  std::uint32_t most_pairs = 32;
  double tuned_for = 30;      // pairs at which the interval is narrowest
  double worthwhile = 0.005;  // eps: a smaller gain of J is not sought
};

enum class Verdict : std::uint8_t { go_on, accept, drop };

struct PairedTest {
  std::uint32_t n = 0;
  double mean = 0;
  double squares = 0;  // sum of squared deviations
  // Blocks of the incumbent in which it broke a constraint. The candidate's own breaches end it.
  std::uint32_t incumbent_breaches = 0;

  void add(double difference);
  double sd() const;
  // (-inf, inf) below two pairs.
  experiment::Interval interval(const TestOptions& options) const;
  // accept: J is better beyond doubt; or the incumbent broke a constraint in half of its blocks,
  // the candidate never did, and it has not been shown to be worse.
  Verdict verdict(const TestOptions& options) const;
  friend bool operator==(const PairedTest&, const PairedTest&) = default;
};

}  // namespace paceline::tuner::online
