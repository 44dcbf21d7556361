#include "control/tuner/online/observation/objective.h"

#include <catch2/catch.hpp>
#include <cmath>

namespace paceline::tuner::online {
namespace {

void slowdowns(telemetry::MessageFigures& figures, std::size_t bucket, std::uint64_t n) {
  figures.begun += n;
  figures.completed += n;
  figures.begun_bytes += n * 1000;
  figures.completed_bytes += n * 1000;
  figures.slowdown[bucket] += n;
}

TEST_CASE("window: quantiles of slowdown lie where the buckets say", "[tuner_online]") {
  telemetry::MessageFigures figures;
  CHECK_FALSE(slowdown_quantile(figures, 0.99));
  slowdowns(figures, 8, 100);  // 2 .. 2.18
  CHECK(*slowdown_quantile(figures, 0) == Approx(2));
  CHECK(*slowdown_quantile(figures, 1) == Approx(std::pow(2, 9.0 / 8)));
  slowdowns(figures, 40, 100);
  CHECK(*slowdown_quantile(figures, 0.25) == Approx(std::pow(2, 8.5 / 8)));
  CHECK(*slowdown_quantile(figures, 0.99) == Approx(std::pow(2, 40.98 / 8)));
}

TEST_CASE("window: sums of counts, worst of levels", "[tuner_online]") {
  Window a;
  a.end_ns = 10;
  a.retransmitted = 3;
  a.queue_p99_bytes = 5;
  a.jain = 0.9;
  a.cpu_share = 0.2;
  a.cycles = 7;
  a.cycle_packets = 2;
  Window b = a;
  b.begin_ns = 10;
  b.end_ns = 40;
  b.queue_p99_bytes = 2;
  b.jain = 0.5;
  b.cpu_share = 0.6;
  Window sum;
  add(sum, a);
  add(sum, b);
  CHECK(span_ns(sum) == 40);
  CHECK(sum.retransmitted == 6);
  CHECK(sum.queue_p99_bytes == 5);
  CHECK(sum.jain == 0.5);
  CHECK(sum.cpu_share == Approx((0.2 * 10 + 0.6 * 30) / 40));
  CHECK(sum.cycles == 14);
  CHECK(sum.cycle_packets == 4);
}

TEST_CASE("objective: each part has its weight and its sign", "[tuner_online]") {
  Window a;
  a.end_ns = 10;
  slowdowns(a.messages[0], 8, 100);
  slowdowns(a.messages[2], 16, 100);
  a.cycles = 1000;
  a.cycle_packets = 10;
  const auto base = objective_parts(a);
  const auto difference = [&](const Window& b) {
    return objective_difference(base, objective_parts(b));
  };
  const double bucket = std::log(2.0) / 8;
  CHECK(*difference(a) == 0);
  Window b = a;
  b.messages[0].slowdown[8] = 0;
  b.messages[0].slowdown[18] = 100;
  CHECK(*difference(b) == Approx(-0.5 * 10 * bucket));
  b = a;
  b.messages[2].slowdown[16] = 0;
  b.messages[2].slowdown[14] = 100;
  CHECK(*difference(b) == Approx(+0.5 * 2 * bucket));
  b = a;
  b.messages[2].completed_bytes /= 2;
  CHECK(*difference(b) == Approx(std::log(150.0 / 200)));
  b = a;
  b.cycles = 2000;
  CHECK(*difference(b) == Approx(-0.1 * std::log(2)));
  b.cycle_packets = 0;  // not known: not compared
  CHECK(*difference(b) == 0);
  b = a;
  b.phase_ratio = 8;  // takes the place of the large messages
  CHECK(*difference(b) == Approx(-0.5 * (std::log(8) - *objective_parts(a).large)));
}

TEST_CASE("objective: parts that one block lacks are not compared, a stall is", "[tuner_online]") {
  Window a;
  a.end_ns = 10;
  slowdowns(a.messages[0], 8, 100);
  slowdowns(a.messages[2], 8, 100);
  Window b = a;
  b.messages[2] = {};
  CHECK(*objective_difference(objective_parts(a), objective_parts(b)) == Approx(0).margin(1e-12));
  b.messages[0].completed = b.messages[0].completed_bytes = 0;
  b.messages[0].slowdown = {};
  const auto stalled = objective_parts(b);
  CHECK(stalled.stalled);
  CHECK(*objective_difference(objective_parts(a), stalled) == Approx(std::log(kLeastGoodputShare)));
  CHECK_FALSE(objective_difference(objective_parts(a), objective_parts(Window{})));
  CHECK_FALSE(objective(objective_parts(Window{})));
}

}  // namespace
}  // namespace paceline::tuner::online
