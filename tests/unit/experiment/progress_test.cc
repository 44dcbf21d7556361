#include "control/experiment/progress.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <stdexcept>

using namespace paceline::experiment;

TEST_CASE("time left is unknown until a unit has finished") {
  Progress progress({{0, 1}, {0, 1}}, 1);
  CHECK(std::isnan(progress.estimate(0).seconds_left));
  progress.start(0, 0);
  CHECK(std::isnan(progress.estimate(3).seconds_left));
  progress.finish(0, 4);
  CHECK(progress.estimate(4).seconds_left == Approx(4));
  CHECK(progress.estimate(4).fraction == Approx(0.5));
  progress.start(1, 4);
  CHECK(progress.estimate(5).seconds_left == Approx(3));
  CHECK(progress.estimate(5).fraction == Approx(5.0 / 8));
  progress.finish(1, 8);
  const ProgressEstimate end = progress.estimate(9);
  CHECK(end.seconds_left == 0);
  CHECK(end.fraction == 1);
  CHECK(end.done == 2);
  CHECK(end.total == 2);
}

TEST_CASE("a group that has not run yet is scaled from its prior, one that has by its mean") {
  // Group 1 is said to cost three times group 0.
  Progress progress({{0, 10}, {1, 30}, {0, 10}, {1, 30}}, 1);
  progress.start(0, 0);
  progress.finish(0, 2);
  CHECK(progress.estimate(2).seconds_left == Approx(6 + 2 + 6));
  // In truth five times.
  progress.start(1, 2);
  progress.finish(1, 12);
  CHECK(progress.estimate(12).seconds_left == Approx(2 + 10));
}

TEST_CASE("jobs share the remaining work, but a unit is not divided") {
  Progress progress({{0, 1}, {0, 1}, {0, 1}, {0, 1}}, 2);
  progress.start(0, 0);
  progress.start(1, 0);
  progress.finish(0, 10);
  progress.start(2, 10);
  // Unit 1 runs over its expectation by nothing yet: due now, a tenth of 10 s granted; unit 2 needs
  // 10, unit 3 starts on the first worker free and needs 10.
  CHECK(progress.estimate(10).seconds_left == Approx(11));
  progress.finish(1, 10);
  progress.start(3, 10);
  CHECK(progress.estimate(14).seconds_left == Approx(6));
}

TEST_CASE("workers that come shorten what is left, those that go lengthen it") {
  Progress progress(std::vector<WorkUnit>(9), 1);
  progress.start(0, 0);
  progress.finish(0, 10);
  CHECK(progress.estimate(10).seconds_left == Approx(80));
  progress.set_jobs(4);
  CHECK(progress.estimate(10).seconds_left == Approx(20));
  progress.set_jobs(3);
  CHECK(progress.estimate(10).seconds_left == Approx(30));
  progress.set_jobs(0);  // never none
  CHECK(progress.estimate(10).seconds_left == Approx(80));
}

TEST_CASE("a unit that takes longer than expected never makes time left zero or negative") {
  Progress progress({{0, 1}, {0, 1}}, 1);
  progress.start(0, 0);
  progress.finish(0, 1);
  progress.start(1, 1);
  for (const double now : {1.5, 2.0, 5.0, 100.0}) {
    CHECK(progress.estimate(now).seconds_left > 0);
    CHECK(progress.estimate(now).fraction < 1);
  }
}

TEST_CASE("misuse of the estimator is refused") {
  CHECK_THROWS_AS(Progress({{0, 0.0}}, 1), std::invalid_argument);
  CHECK_THROWS_AS(Progress({{0, std::numeric_limits<double>::infinity()}}, 1),
                  std::invalid_argument);
  Progress progress({{0, 1}}, 0);
  CHECK_THROWS_AS(progress.finish(0, 1), std::logic_error);
  progress.start(0, 0);
  CHECK_THROWS_AS(progress.start(0, 0), std::logic_error);
  CHECK_THROWS_AS(progress.start(1, 0), std::out_of_range);
}

TEST_CASE("durations read as people say them") {
  CHECK(format_duration(0) == "0 s");
  CHECK(format_duration(8.4) == "8 s");
  CHECK(format_duration(59.6) == "1 min 00 s");
  CHECK(format_duration(125) == "2 min 05 s");
  CHECK(format_duration(4320) == "1 h 12 min");
  CHECK(format_duration(std::numeric_limits<double>::quiet_NaN()) == "?");
}
