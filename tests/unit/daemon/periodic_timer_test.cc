// Beats come, keep their distance from the first, and end.
#include "control/daemon/service_link/periodic_timer.h"

#include <catch2/catch.hpp>
#include <vector>

namespace paceline::daemon {

TEST_CASE("beats follow until one of them stops the timer, and it can be started again",
          "[timer]") {
  boost::asio::io_context context;
  PeriodicTimer timer(context);
  for (int round = 0; round < 2; ++round) {
    int beats = 0;
    REQUIRE(timer
                .start(std::chrono::milliseconds(1),
                       [&] {
                         if (++beats == 20) timer.stop();
                       })
                .empty());
    context.restart();
    context.run();  // returns, because nothing waits any more
    CHECK(beats == 20);
  }
}

TEST_CASE("no beat comes before its time, however late those before it were", "[timer]") {
  using std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kEvery{2};
  boost::asio::io_context context;
  PeriodicTimer timer(context);
  std::vector<steady_clock::time_point> beats;
  const auto begin = steady_clock::now();
  REQUIRE(timer
              .start(kEvery,
                     [&] {
                       beats.push_back(steady_clock::now());
                       if (beats.size() == 3) {
                         // Too busy for some beats: they are left out.
                         while (steady_clock::now() < beats.back() + 5 * kEvery) continue;
                       }
                       if (beats.size() == 10) timer.stop();
                     })
              .empty());
  context.run();
  REQUIRE(beats.size() == 10);
  for (std::size_t i = 0; i < beats.size(); ++i) {
    CAPTURE(i);
    CHECK(beats[i] - begin >= static_cast<int>(i + 1 + (i > 2 ? 4 : 0)) * kEvery);
  }
}

TEST_CASE("a timer that was stopped does not beat", "[timer]") {
  boost::asio::io_context context;
  PeriodicTimer timer(context);
  bool beaten = false;
  REQUIRE(timer.start(std::chrono::milliseconds(1), [&] { beaten = true; }).empty());
  timer.stop();
  context.run();
  CHECK_FALSE(beaten);
}

}  // namespace paceline::daemon
