#include "control/experiment/metrics.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string_view>

#include "control/experiment/run_result.h"

using namespace paceline;
using namespace paceline::experiment;

TEST_CASE("every metric has a name of its own, found again, and a meaning") {
  std::set<std::string_view> names, labels;
  for (const MetricSpec& spec : metric_table()) {
    CHECK(names.insert(spec.name).second);
    CHECK(labels.insert(spec.label).second);
    CHECK(metric_by_name(spec.name) == spec.metric);
    CHECK_FALSE(spec.meaning.empty());
    CHECK(spec.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") ==
          std::string_view::npos);
  }
  CHECK_FALSE(metric_by_name("no_such_metric").has_value());
  CHECK_FALSE(metric_by_name("").has_value());
}

TEST_CASE("metrics that judge have a direction; guardrails and primaries judge") {
  for (const MetricSpec& spec : metric_table()) {
    INFO(spec.name);
    if (spec.role == Role::primary || spec.role == Role::guardrail) {
      CHECK(spec.better != Better::neither);
    }
    // Censoring needs to know which side lost.
    if (spec.needs_completion) CHECK(spec.better != Better::neither);
  }
}

TEST_CASE("size bins include their upper bound") {
  CHECK(size_bin(1) == SizeBin::small);
  CHECK(size_bin(65'536) == SizeBin::small);
  CHECK(size_bin(65'537) == SizeBin::medium);
  CHECK(size_bin(1'048'576) == SizeBin::medium);
  CHECK(size_bin(1'048'577) == SizeBin::large);
  CHECK(slowdown_metric(SizeBin::all, SlowdownStatistic::mean) == Metric::slowdown_mean);
  CHECK(slowdown_metric(SizeBin::small, SlowdownStatistic::p99) == Metric::slowdown_small_p99);
  CHECK(slowdown_metric(SizeBin::medium, SlowdownStatistic::p50) == Metric::slowdown_medium_p50);
}

TEST_CASE("limiter shares follow the limiters of congestion control") {
  CHECK(limiter_metric(cc::Limiter::application) == Metric::limited_application);
  CHECK(limiter_metric(cc::Limiter::grant) == Metric::limited_grant);
  CHECK(limiter_metric(cc::Limiter::uplink) == Metric::limited_uplink);
  CHECK(limiter_metric(cc::Limiter::path) == Metric::limited_path);
  CHECK(limiter_metric(cc::Limiter::window) == Metric::limited_window);
  CHECK(limiter_metric(cc::Limiter::credit) == Metric::limited_credit);
  CHECK(limiter_metric(cc::Limiter::port) == Metric::limited_port);
}

TEST_CASE("a fresh run knows nothing: not applicable, never zero") {
  const RunResult run;
  for (const MetricSpec& spec : metric_table()) CHECK(std::isnan(run.metrics[spec.metric]));
}
