#include "control/tuner/online/observation/constraints.h"

#include <catch2/catch.hpp>

namespace paceline::tuner::online {
namespace {

using Catch::Matchers::Contains;

Window clean() {
  Window w;
  w.end_ns = 10'000'000;
  w.tx_packets = w.rx_packets = 1000;
  w.delay_p99_ns = 5000;
  w.queue_p99_bytes = 100e3;
  w.jain = 0.95;
  w.cpu_share = 0.5;
  return w;
}

Constraints bounds() {
  Constraints c;
  c.delay_p99_ns = 10'000;
  c.queue_p99_bytes = 1e6;
  return c;
}

TEST_CASE("constraints: a clean window breaks none", "[tuner_online]") {
  CHECK_FALSE(breach_of(clean(), bounds()));
}

TEST_CASE("constraints: each one is broken by itself, just beyond its bound", "[tuner_online]") {
  const auto broken = [](const Window& w) {
    const auto breach = breach_of(w, bounds());
    return breach ? breach->constraint : Constraint{99};
  };
  Window w = clean();
  w.dropped = 1;
  CHECK(broken(w) == Constraint::loss);
  w = clean();
  w.retransmitted = 1;
  w.ce_packets = 1;
  CHECK(broken(w) == Constraint::loss);
  w = clean();
  w.paused_ns = 10'000;  // .1 % of 10 ms
  CHECK_FALSE(breach_of(w, bounds()));
  w.paused_ns = 10'001;
  CHECK(broken(w) == Constraint::pause);
  w = clean();
  w.delay_p99_ns = 10'000;
  CHECK_FALSE(breach_of(w, bounds()));
  w.delay_p99_ns = 10'001;
  CHECK(broken(w) == Constraint::delay);
  w = clean();
  w.queue_p99_bytes = 1e6;
  CHECK_FALSE(breach_of(w, bounds()));
  w.queue_p99_bytes = 1e6 + 1;
  CHECK(broken(w) == Constraint::queue);
  w = clean();
  w.jain = 0.85;
  CHECK_FALSE(breach_of(w, bounds()));
  w.jain = 0.849;
  CHECK(broken(w) == Constraint::fairness);
  w = clean();
  w.cpu_share = 0.9;
  CHECK_FALSE(breach_of(w, bounds()));
  w.cpu_share = 0.901;
  CHECK(broken(w) == Constraint::cpu);
  CHECK_THAT(breach_of(w, bounds())->words, Contains("90.1 %") && Contains("at most 90 %"));
}

TEST_CASE("constraints: what is not measured is not judged", "[tuner_online]") {
  Window w = clean();
  w.delay_p99_ns = w.queue_p99_bytes = w.jain = w.cpu_share = -1;
  CHECK_FALSE(breach_of(w, bounds()));
}

TEST_CASE("constraints: loss without a sign of congestion is the link's", "[tuner_online]") {
  Window w = clean();
  w.retransmitted = 100;
  CHECK_FALSE(breach_of(w, bounds()));
}

TEST_CASE("constraints: the watch judges the last span as one", "[tuner_online]") {
  ConstraintWatch watch(bounds(), 50'000'000);
  Window w = clean();
  w.paused_ns = 20'000;  // .2 % of the window, .04 % of the span
  const auto at = [&](int i) {
    w.begin_ns = i * 10'000'000;
    w.end_ns = w.begin_ns + 10'000'000;
    return watch.add(w);
  };
  CHECK_FALSE(at(0));
  CHECK_FALSE(at(1));
  CHECK(at(2));  // 60 us of 50 ms
  watch.clear();
  CHECK_FALSE(at(3));
  CHECK_FALSE(at(4));
  w.paused_ns = 0;
  for (int i = 5; i < 9; ++i) CHECK_FALSE(at(i));
  w.paused_ns = 45'000;  // the two of before have left the span
  CHECK_FALSE(at(9));
  CHECK(watch.windows().size() == 5);
}

}  // namespace
}  // namespace paceline::tuner::online
