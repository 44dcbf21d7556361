// Time series: that looking changes nothing, and that what was seen adds up.

#include "tools/run/run_series.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "cc/registry.h"
#include "dataplane/config/scenario/scenario_reader.h"
#include "tools/run/scenario_run.h"

namespace paceline::tools {
namespace {

using experiment::Signal;
using experiment::TimeSeries;

// Shallow thresholds, so that a short run has marks, pauses and, without PFC, losses.
PreparedScenario prepared(const std::string& algorithm, const std::string& more = "") {
  config::ReaderOptions options;
  options.algorithms = cc::algorithms();
  auto read = config::read_scenario_text(R"(schema = 1
name = "series"
[fabric]
hosts = 9
buffer = "2MiB"
ecn = { kmin = "20kB", kmax = "80kB", pmax = 0.5 }
[cc]
algorithm = ")" + algorithm + R"("
[workload]
kind = "incast"
fan_in = 8
message_bytes = "400kB"
start_jitter = "2us"
)" + more,
                                         "test", ".", options);
  REQUIRE(read.errors == std::vector<std::string>{});
  auto out = prepare(std::move(read.value));
  REQUIRE(out.ok());
  return std::move(out.value);
}

ScenarioRun run(const PreparedScenario& scenario, bool series) {
  RunControl control;
  control.series = series;
  return run_scenario(scenario, scenario.scenario.cc, 5, control);
}

std::uint64_t sum(const TimeSeries& series, Signal signal) {
  return std::accumulate(series[signal].begin(), series[signal].end(), std::uint64_t{0});
}

void check_shape(const TimeSeries& series, Picos end) {
  CHECK(series.end == end);
  CHECK(series.size() <= SeriesRecorder::kIntervals);
  CHECK(static_cast<std::int64_t>(series.size()) ==
        (end.count + series.interval.count - 1) / series.interval.count);
  for (const auto& values : series.values) CHECK(values.size() == series.size());
}

TEST_CASE("series: looking changes no result", "[series]") {
  for (const std::string algorithm : {"dcqcn", "cadence", "fixed"}) {
    for (const std::string more : {"", "[fabric.pfc]\nenabled = false\n"}) {
      CAPTURE(algorithm, more);
      const PreparedScenario scenario = prepared(algorithm, more);
      const ScenarioRun plain = run(scenario, false);
      const ScenarioRun looked = run(scenario, true);
      CHECK(plain.series.size() == 0);
      CHECK(looked.series.size() > 100);
      CHECK(looked.result.trace_hash == plain.result.trace_hash);
      CHECK(looked.result.events == plain.result.events);
      CHECK(looked.network == plain.network);
      for (std::size_t i = 0; i < plain.flows.size(); ++i) {
        CHECK(looked.flows[i].fct == plain.flows[i].fct);
      }
      for (const experiment::MetricSpec& spec : experiment::metric_table()) {
        const double a = plain.result.metrics[spec.metric];
        const double b = looked.result.metrics[spec.metric];
        CAPTURE(spec.name);
        CHECK((a == b || (a != a && b != b)));
      }
    }
  }
}

TEST_CASE("series: intervals add up to the totals of the run", "[series]") {
  const PreparedScenario scenario = prepared("fixed");
  const ScenarioRun all = run(scenario, true);
  check_shape(all.series, all.result.simulated);
  CHECK(sum(all.series, Signal::delivered) == 8 * 400'000);
  CHECK(sum(all.series, Signal::marked) == all.network.marked_packets);
  CHECK(sum(all.series, Signal::cnps) == all.counters.cnps_sent);
  CHECK(sum(all.series, Signal::dropped) == all.network.total_drops());
  CHECK(sum(all.series, Signal::retransmitted) == all.counters.retransmitted_bytes);
  CHECK(all.network.pause_time > Picos{0});
  CHECK(sum(all.series, Signal::paused) ==
        static_cast<std::uint64_t>(all.network.pause_time.count));
  // A pause is seen while it lasts: no interval holds more than all of its links and classes.
  const auto most = static_cast<std::uint64_t>(all.series.interval.count) * 18;
  for (const std::uint64_t paused : all.series[Signal::paused]) CHECK(paused <= most);
  // The receiver's link is the bound of what arrives in an interval, give or take a packet.
  const double line = 100e9 / 8e12 * static_cast<double>(all.series.interval.count) + 4096;
  for (const std::uint64_t bytes : all.series[Signal::delivered]) {
    CHECK(static_cast<double>(bytes) <= line);
  }
}

TEST_CASE("series: queues are those of the fabric", "[series]") {
  const ScenarioRun all = run(prepared("fixed"), true);
  const auto& deepest = all.series[Signal::deepest_queue];
  const double most = static_cast<double>(*std::max_element(deepest.begin(), deepest.end()));
  const double metric = all.result.metrics[experiment::Metric::queue_max_bytes];
  // Looks are 100 ns apart and a packet takes 330 ns: the greatest may be missed by one or two.
  CHECK(most <= metric);
  CHECK(most > metric - 3 * 4200);
  for (std::size_t i = 0; i < all.series.size(); ++i) {
    CHECK(all.series[Signal::queued][i] >= deepest[i]);
  }
  CHECK(deepest.back() <= 4200);  // nothing is left when the last message is acknowledged
}

TEST_CASE("series: a run far longer than expected keeps evenly spaced looks", "[series]") {
  // A second message a thousand times later than the first one lasts.
  config::Scenario scenario = prepared("fixed").scenario;
  MessagePlan plan;
  plan.messages = {
      {.src = 1, .dst = 0, .bytes = 100'000},
      {.src = 2, .dst = 0, .bytes = 100'000, .start = picos_from_micros(20'000)},
  };
  VirtualWorld* running = nullptr;
  SeriesRecorder recorder(picos_from_micros(1) / 10);  // far too close for 20 ms
  WorldOptions options;
  options.sample_interval = recorder.first_distance();
  options.sample = [&](const VirtualWorld&, Picos at) { recorder.look(*running, at); };
  VirtualWorld world(scenario, plan, options);
  running = &world;
  REQUIRE(world.run() == RunEnd::completed);
  const TimeSeries series = recorder.finish(world);
  check_shape(series, world.now());
  CHECK(series.size() > SeriesRecorder::kIntervals / 2);
  CHECK(series.interval.count % 100'000 == 0);
  CHECK(sum(series, Signal::delivered) == 200'000);
  CHECK(series[Signal::delivered].front() == 100'000);
  CHECK(series[Signal::delivered].back() > 0);
  CHECK(series[Signal::delivered][series.size() / 2] == 0);
}

TEST_CASE("series: the first distance is a round fraction of the run's lower bound", "[series]") {
  const config::Scenario scenario = prepared("fixed").scenario;
  const auto distance = [&](std::uint64_t bytes) {
    MessagePlan plan;
    plan.messages = {{.src = 1, .dst = 0, .bytes = bytes}};
    return first_look_distance(scenario, plan).count;
  };
  CHECK(distance(1) == 100'000);
  CHECK(distance(5'120'000) == 100'000);  // 409.6 us at 100 Gb/s: 4096 looks
  CHECK(distance(5'120'000 * 2) == 200'000);
  CHECK(distance(5'120'000 * 99) == 5'000'000);
  CHECK(distance(5'120'000 * 100) == 10'000'000);
  CHECK(first_look_distance(scenario, {}).count == 100'000);
}

}  // namespace
}  // namespace paceline::tools
