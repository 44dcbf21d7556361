// Figures read off messages, against values worked out by hand.

#include <catch2/catch.hpp>
#include <cmath>

#include "control/league/cell.h"
#include "control/league/metrics.h"

namespace paceline::league {
namespace {

// 1 us per kilobyte and 2 us of latency, from host `src` to `dst`.
Message message(std::uint32_t src, std::uint32_t dst, std::uint64_t kilobytes,
                std::int64_t start_us, std::int64_t took_us) {
  Message m;
  m.src = src;
  m.dst = dst;
  m.bytes = kilobytes * 1000;
  m.start = Picos{start_us * 1'000'000};
  m.took = Picos{took_us * 1'000'000};
  m.ideal = Picos{static_cast<std::int64_t>(kilobytes + 2) * 1'000'000};
  return m;
}

TEST_CASE("league measures: slowdown quantiles are nearest ranks, by size") {
  std::vector<Message> messages;
  for (int i = 1; i <= 1000; ++i) {  // 8 kB: ideal 10 us
    messages.push_back(message(0, 1, 8, 0, 10 * i));
  }
  messages.push_back(message(0, 1, 98, 0, 300));  // 64 KiB .. 1 MiB: 3 times ideal
  Measures m;
  slowdown_measures(messages, m);
  CHECK(m[Measure::slowdown_small_p50] == 500);
  CHECK(m[Measure::slowdown_small_p99] == 990);
  CHECK(m[Measure::slowdown_small_p999] == 999);
  CHECK(m[Measure::slowdown_medium_p50] == 3);
  CHECK(m[Measure::slowdown_medium_p999] == 3);
  CHECK(std::isnan(m[Measure::slowdown_large_p50]));
  CHECK(m[Measure::slowdown_p50] == 500);
}

TEST_CASE("league measures: the least makespan is that of the busiest port") {
  // Two of 100 kB into host 2: 200 us of its link; a short one tells the latency apart.
  std::vector<Message> messages = {message(0, 2, 100, 0, 204), message(1, 2, 100, 0, 250),
                                   message(0, 1, 1, 0, 3)};
  CHECK(makespan_efficiency(messages) == Approx(200.0 / 250));
  messages[1].took = Picos{400'000'000};
  CHECK(makespan_efficiency(messages) == Approx(0.5));
  messages[1].completed = false;
  CHECK(std::isnan(makespan_efficiency(messages)));
}

TEST_CASE("league measures: what links can carry until a time") {
  // Host 2 receives from 10 us on and is busy for 200 us; senders could have done it in 100 us.
  const std::vector<Message> messages = {message(0, 2, 100, 10, 1), message(1, 2, 100, 10, 1),
                                         message(0, 1, 1, 500, 1)};
  CHECK(deliverable_bytes(messages, Picos{60'000'000}) == Approx(50'000));
  CHECK(deliverable_bytes(messages, Picos{110'000'000}) == Approx(100'000));
  CHECK(deliverable_bytes(messages, Picos{300'000'000}) == Approx(200'000));
  CHECK(deliverable_bytes(messages, Picos{0}) == 0);
  CHECK(deliverable_bytes({}, Picos{1}) == 0);
}

TEST_CASE("league runs: a line that is read back is the run") {
  Run run;
  run.scenario = "burst";
  run.entry = "a \"quoted\" one";
  run.repetition = 2;
  run.seed = 9007199254740991;
  run.status = experiment::RunStatus::unfinished;
  run.reason = "stopped";
  run.messages = 12;
  run.trace_hash = 0xFEDC'BA98'7654'3210;
  run.measures[Measure::efficiency] = 0.123456789123;
  run.course.interval_us = 0.1;
  run.course.end_us = 0.35;
  run.course.queue_bytes = {1, 2, 3, 4};
  run.course.rate_gbps = {1.23456, 0, 99.5, 1e-7};
  round_run(run);
  const std::string line = run_line(run);
  CHECK(line.find('\n') == line.npos);
  const auto back = parse_run_line(line);
  REQUIRE(back);
  CHECK(run_line(*back) == line);
  CHECK(std::isnan(back->measures[Measure::slowdown_p50]));
  CHECK(back->measures[Measure::efficiency] == run.measures[Measure::efficiency]);
  // Lines that a crash cut off, and lines of another kind, are not runs.
  for (std::size_t n = 0; n < line.size(); ++n) {
    CHECK_FALSE(parse_run_line(std::string_view(line).substr(0, n)));
  }
  CHECK_FALSE(parse_run_line("{}"));
  CHECK_FALSE(parse_run_line(R"({"scenario": "a", "trace_hash": "zz"})"));
}

TEST_CASE("league runs: a course is folded without losing peaks or bytes") {
  experiment::TimeSeries series;
  series.interval = Picos{1'000'000};
  series.end = Picos{299'500'000};
  for (auto& values : series.values) values.assign(300, 0);
  series.values[static_cast<std::size_t>(experiment::Signal::deepest_queue)][7] = 5000;
  for (auto& v : series.values[static_cast<std::size_t>(experiment::Signal::delivered)]) v = 1000;
  const Course course = course_of(series);
  REQUIRE(course.queue_bytes.size() == 100);
  CHECK(course.interval_us == 3);
  CHECK(course.queue_bytes[2] == 5000);
  CHECK(course.rate_gbps[0] == Approx(8));                  // 3000 bytes in 3 us
  CHECK(course.rate_gbps[99] == Approx(3000 * 8 / 2.5e3));  // the last interval is shorter
  CHECK(course.paused_us.empty());
}

}  // namespace
}  // namespace paceline::league
