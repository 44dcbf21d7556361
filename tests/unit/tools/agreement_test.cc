// Comparing runs window by window: on windows made by hand.
#include "tools/emulate/agreement.h"

#include <catch2/catch.hpp>

namespace paceline::tools {
namespace {

constexpr Picos kWindow = picos_from_micros(10'000);

// `count` windows with a queue of `queue` and two hosts, of which the second sends at `rate`.
std::vector<AgreementWindow> steady(std::size_t count, double queue, double rate) {
  std::vector<AgreementWindow> out;
  for (std::size_t i = 0; i < count; ++i) {
    const Picos begin = kWindow * static_cast<std::int64_t>(i);
    out.push_back({begin, begin + kWindow, queue, {1e12, rate}});
  }
  return out;
}

Agreement compared(const std::vector<AgreementWindow>& a, const std::vector<AgreementWindow>& b,
                   const RealTimeReport& report = {}, Picos warm_up = Picos{0}) {
  return compare(a, b, report, {1}, 1000, warm_up);
}

TEST_CASE("agreement: 10 % is close, more is not", "[agreement]") {
  const auto base = steady(50, 50'000, 1e8);
  CHECK(compared(base, steady(50, 54'900, 1.09e8)).close());
  CHECK(compared(base, steady(50, 45'100, 0.91e8)).close());
  const Agreement deep = compared(base, steady(50, 56'000, 1e8));
  CHECK_FALSE(deep.close());
  CHECK(deep.queue_difference == Approx(0.12));
  CHECK(deep.rate_difference == 0);
  CHECK_FALSE(compared(base, steady(50, 50'000, 0.89e8)).close());
}

TEST_CASE("agreement: of a short queue what nobody notices is close", "[agreement]") {
  const auto base = steady(50, 500, 1e8);
  CHECK(compared(base, steady(50, 1400, 1e8)).close());
  CHECK_FALSE(compared(base, steady(50, 1600, 1e8)).close());
  CHECK(compared(steady(50, 0, 1e8), steady(50, 900, 1e8)).close());
}

TEST_CASE("agreement: windows with a stop and those at the start are left out of both",
          "[agreement]") {
  auto base = steady(60, 50'000, 1e8);
  auto real = steady(70, 50'000, 1e8);
  for (std::size_t i = 0; i < 10; ++i) real[i].queue_bytes = 1e9;   // start
  for (std::size_t i = 20; i < 50; ++i) real[i].queue_bytes = 1e9;  // stops
  for (std::size_t i = 20; i < 50; ++i) base[i].rates[1] = 7e9;
  RealTimeReport report;
  for (std::int64_t i = 20; i < 50; ++i) {
    const Picos at = kWindow * i + picos_from_micros(500);
    report.stops.push_back({at, at + picos_from_micros(300)});
  }
  const Agreement a = compared(base, real, report, kWindow * 10);
  CHECK(a.windows == 60);
  CHECK(a.warm_up == 10);
  CHECK(a.stopped == 30);
  CHECK(a.counted == 20);
  CHECK(a.enough());
  CHECK(a.close());
  CHECK(a.real_time.queue_bytes == 50'000);
  CHECK(a.virtual_time.rate == 1e8);
  CHECK_FALSE(compared(base, real, {}, kWindow * 10).close());
  // Stops that were held took no time.
  report.on_stop = OnStop::hold;
  CHECK(compared(base, real, report, kWindow * 10).stopped == 0);
  CHECK_FALSE(compared(base, real, report, kWindow * 10).close());
}

TEST_CASE("agreement: too few windows say nothing", "[agreement]") {
  CHECK_FALSE(compared(steady(19, 1, 1), steady(60, 1, 1)).enough());
  CHECK_FALSE(compared({}, {}).enough());
  CHECK(compared(steady(20, 1, 1), steady(60, 1, 1)).enough());
}

}  // namespace
}  // namespace paceline::tools
