#include "dataplane/pacing/deadline_queue.h"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "dataplane/base/units.h"

namespace paceline::pacing {
namespace {

TEST_CASE("contexts leave in proportion to their rates, without drift") {
  // Packets of 4170 bytes at 100, 50, 25 and 25 Gb/s for one millisecond.
  const std::array<Rate, 4> rates = {rate_from_gbps(100), rate_from_gbps(50), rate_from_gbps(25),
                                     rate_from_gbps(25)};
  DeadlineQueue queue(4);
  std::array<Picos, 4> due{};
  std::array<std::int64_t, 4> departures{};
  for (std::uint32_t i = 0; i < 4; ++i) queue.schedule(i, Picos{0});
  const Picos end = picos_from_micros(1000);
  Picos last{0};
  while (queue.next_deadline() < end) {
    const Picos now = queue.next_deadline();
    REQUIRE(now >= last);
    last = now;
    const std::uint32_t index = queue.pop_due(now);
    REQUIRE(index != DeadlineQueue::kNone);
    REQUIRE(due[index] == now);
    ++departures[index];
    due[index] = now + serialization_time(4170, rates[index]);
    queue.schedule(index, due[index]);
  }
  for (std::uint32_t i = 0; i < 4; ++i) {
    const Picos gap = serialization_time(4170, rates[i]);
    CHECK(departures[i] == (end.count + gap.count - 1) / gap.count);
  }
}

TEST_CASE("contexts with equal rates take turns by index") {
  DeadlineQueue queue(3);
  for (const std::uint32_t i : {2U, 0U, 1U}) queue.schedule(i, Picos{0});
  std::vector<std::uint32_t> order;
  for (int i = 0; i < 9; ++i) {
    const Picos now = queue.next_deadline();
    order.push_back(queue.pop_due(now));
    queue.schedule(order.back(), now + Picos{10});
  }
  CHECK(order == std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("a context may be paused and resumed") {
  DeadlineQueue queue(2);
  queue.schedule(0, Picos{10});
  queue.schedule(1, Picos{20});
  queue.cancel(0);
  CHECK(queue.next_deadline() == Picos{20});
  queue.schedule(0, Picos{15});
  CHECK(queue.pop_due(Picos{20}) == 0);
  CHECK(queue.pop_due(Picos{20}) == 1);
}

}  // namespace
}  // namespace paceline::pacing
