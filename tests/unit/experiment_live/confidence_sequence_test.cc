#include <catch2/catch.hpp>
#include <cmath>

#include "control/experiment/live/analysis/confidence_sequence.h"
#include "dataplane/base/numbers/distributions.h"

using namespace paceline;
using namespace paceline::experiment;
using namespace paceline::experiment::live;

namespace {

// The formula as it stands in the literature, with libm.
double reach_by_hand(double n, double s, double alpha, double tuned) {
  const double r2 = (-2 * std::log(alpha) + std::log(-2 * std::log(alpha) + 1)) / tuned;
  return s * std::sqrt(2 * (n * r2 + 1) / (n * n * r2) * std::log(std::sqrt(n * r2 + 1) / alpha));
}

// The share of A/A experiments, with up to 300 looks each, that would ever have been stopped.
double stopped_share(unsigned experiments, std::uint32_t least, std::uint64_t seed) {
  unsigned stopped = 0;
  for (unsigned e = 0; e < experiments; ++e) {
    Random random(seed, e);
    std::vector<double> d;
    for (int n = 0; n < 300; ++n) d.push_back(0.085 * standard_normal(random));
    for (const SequencePoint& point : sequence_of(d, 0.05)) {
      if (point.n < least) continue;
      if (point.interval.low > 0 || point.interval.high < 0) {
        ++stopped;
        break;
      }
    }
  }
  return stopped / static_cast<double>(experiments);
}

}  // namespace

TEST_CASE("the confidence sequence is the normal mixture's formula") {
  for (const double n : {1.0, 2.0, 12.0, 30.0, 300.0}) {
    for (const double alpha : {0.01, 0.05, 0.1}) {
      CHECK(sequence_reach(static_cast<std::uint64_t>(n), 0.7, alpha, 30) ==
            Approx(reach_by_hand(n, 0.7, alpha, 30)).epsilon(1e-12));
    }
  }
  // n = n* = 30, alpha = .05, by hand: n r^2 = 5.99146 + ln 6.99146 = 7.93615;
  // sqrt(2 * 8.93615 / (30 * 7.93615) * ln(sqrt(8.93615) / .05)) = sqrt(.0750675 * 4.09079).
  CHECK(sequence_reach(30, 1, 0.05, 30) == Approx(0.55415).epsilon(1e-5));
  CHECK_THROWS_AS(sequence_reach(0, 1, 0.05), std::invalid_argument);
  CHECK_THROWS_AS(sequence_reach(5, 1, 1), std::invalid_argument);
}

TEST_CASE("a sequence's course and its point agree with two-pass moments") {
  const std::vector<double> d{0.3, -0.1, 0.25, 0.7, 1e-3};
  const auto course = sequence_of(d, 0.05);
  REQUIRE(course.size() == d.size());
  CHECK(std::isnan(course[0].interval.low));  // one value has no spread
  const MeanEstimate reference = t_interval(d, 0.95);
  CHECK(course.back().mean == Approx(reference.mean));
  CHECK(course.back().sd == Approx(reference.sd));
  CHECK(sequence_at(d, 0.05).interval.low == course.back().interval.low);
  // One-sided at alpha: an end of the two-sided at 2 alpha, so nearer.
  CHECK(one_sided_bounds(d, 0.05).low > course.back().interval.low);
}

TEST_CASE("peeking after every pair: false positives over the whole of an experiment", "[slow]") {
  const double share = stopped_share(2000, kLeastPairs, 20'261'122);
  INFO("stopped: " << share);
  CHECK(share <= 0.065);
  CHECK(share >= 0.02);  // it is not so wide as to be of no use
  // Why there is a least number of pairs: with a spread estimated from three values it fails.
  CHECK(stopped_share(2000, 3, 20'261'122) > 0.08);
}

TEST_CASE("a t interval that is looked at after every pair errs several times as often", "[slow]") {
  constexpr unsigned kExperiments = 300;
  unsigned stopped = 0;
  for (unsigned e = 0; e < kExperiments; ++e) {
    Random random(7, e);
    std::vector<double> d;
    bool excluded = false;
    for (int n = 0; n < 120 && !excluded; ++n) {
      d.push_back(standard_normal(random));
      if (n + 1 < 12) continue;
      const Interval i = t_interval(d, 0.95).interval;
      excluded = i.low > 0 || i.high < 0;
    }
    stopped += excluded;
  }
  INFO("stopped " << stopped << " of " << kExperiments);
  CHECK(stopped > kExperiments / 7);  // 5 % would be 15
}
