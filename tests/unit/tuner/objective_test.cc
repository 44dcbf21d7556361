#include <catch2/catch.hpp>
#include <cmath>

#include "control/tuner/objective.h"

namespace paceline::tuner {
namespace {

using Catch::Matchers::Contains;
using experiment::Metric;
using experiment::RunResult;

RunResult collective(double efficiency, double queue) {
  RunResult run;
  run.scenario = "incast";
  run.metrics[Metric::collective_efficiency] = efficiency;
  run.metrics[Metric::queue_max_bytes] = queue;
  run.metrics[Metric::drops] = 0;
  run.metrics[Metric::pfc_pause_us] = 0;
  return run;
}

TEST_CASE("objective: efficiency of collectives, slowdowns otherwise", "[tuner]") {
  experiment::MetricValues metrics;
  metrics[Metric::slowdown_mean] = 3;
  CHECK(objective_of(metrics) == Approx(-std::log(3)));
  metrics[Metric::slowdown_small_p99] = 4;
  CHECK(objective_of(metrics) == Approx(-std::log(2)));
  metrics[Metric::slowdown_large_mean] = 9;
  CHECK(objective_of(metrics) == Approx(-std::log(2) - std::log(3)));
  metrics[Metric::collective_efficiency] = 0.9;
  CHECK(objective_of(metrics) == Approx(std::log(0.9)));
}

TEST_CASE("score: the mean of the objectives, the worst of the queues", "[tuner]") {
  const std::vector<RunResult> runs{collective(0.8, 1e6), collective(0.9, 3e6)};
  const Score total = score(runs, default_limits());
  CHECK(total.feasible());
  CHECK(total.objective == Approx((std::log(0.8) + std::log(0.9)) / 2));
  CHECK(total.queue_bytes == 3e6);
}

TEST_CASE("score: every limit holds for every run, whatever is gained", "[tuner]") {
  std::vector<RunResult> runs{collective(0.99, 1e6), collective(0.99, 20e6)};
  const std::vector<Limit> limits{{Metric::queue_max_bytes, 16e6}};
  const Score queue = score(runs, limits);
  CHECK_FALSE(queue.feasible());
  CHECK(queue.excess == Approx(0.2));
  CHECK_THAT(queue.broken_limit, Contains("incast") && Contains("queue_max_bytes"));
  runs[1].metrics[Metric::queue_max_bytes] = 16e6;
  CHECK(score(runs, limits).feasible());
  runs[0].metrics[Metric::drops] = 1;
  CHECK_FALSE(score(runs, default_limits()).feasible());
  const Score modest = score(std::vector<RunResult>{collective(0.5, 1e6)}, limits);
  CHECK(better(modest, queue));
  CHECK_FALSE(better(queue, modest));
}

TEST_CASE("score: a run that did not finish is out of the question", "[tuner]") {
  std::vector<RunResult> runs{collective(0.9, 1e6), collective(0.9, 1e6)};
  runs[1].status = experiment::RunStatus::unfinished;
  runs[1].reason = "max_hops reached";
  const Score total = score(runs, default_limits());
  CHECK_FALSE(total.feasible());
  CHECK_THAT(total.broken_limit, Contains("max_hops reached"));
  runs.pop_back();
  runs[0].metrics = {};  // nothing measured
  CHECK_FALSE(score(runs, {}).feasible());
}

TEST_CASE("score: outside the limits, the nearer comes first", "[tuner]") {
  Score near;
  near.excess = 0.1;
  near.objective = -3;
  Score far;
  far.excess = 0.4;
  far.objective = -0.1;
  CHECK(better(near, far));
}

}  // namespace
}  // namespace paceline::tuner
