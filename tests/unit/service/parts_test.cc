// The parts that need no service: budgets, the task queue, translations of numbers.
#include <atomic>
#include <catch2/catch.hpp>
#include <thread>

#include "dataplane/base/numbers/random.h"
#include "dataplane/service/adapters/qp_values.h"
#include "dataplane/service/limits/message_budget.h"
#include "dataplane/service/limits/tenant.h"
#include "dataplane/service/workers/task_queue.h"

using namespace paceline;
using namespace paceline::service;

TEST_CASE("a message budget gives its rate and its burst, and no more") {
  MessageBudget budget(1000, 10);  // one a millisecond
  Picos now = picos_from_micros(5'000'000);
  CHECK(budget.available(now) == 10);
  CHECK(budget.next(now) == now);
  budget.spend(now, 10);
  CHECK(budget.available(now) == 0);
  CHECK(budget.next(now) == now + picos_from_micros(1000));
  now += picos_from_micros(999);
  CHECK(budget.available(now) == 0);
  now += picos_from_micros(1);
  CHECK(budget.available(now) == 1);
  now += picos_from_micros(100'000);
  CHECK(budget.available(now) == 10);
  MessageBudget unlimited(0, 1);
  unlimited.spend(now, 1000);
  CHECK(unlimited.available(now) == MessageBudget::kUnlimited);
}

TEST_CASE("over any span a message budget passes at most burst + rate x span") {
  const std::uint64_t seed = 20260;
  INFO("seed " << seed);
  Random random(seed);
  for (int run = 0; run < 50; ++run) {
    const std::uint64_t rate = 1 + random.next() % 1'000'000;
    const auto burst = static_cast<std::uint32_t>(1 + random.next() % 100);
    MessageBudget budget(rate, burst);
    Picos now{1'000'000'000'000};
    const Picos start = now;
    std::uint64_t passed = 0;
    for (int i = 0; i < 500; ++i) {
      now += Picos{static_cast<std::int64_t>(random.next() % 20'000'000)};
      const std::uint32_t take =
          std::min(budget.available(now), static_cast<std::uint32_t>(1 + random.next() % 50));
      budget.spend(now, take);
      passed += take;
      const double span = static_cast<double>((now - start).count) * 1e-12;
      // The interval is a whole number of picoseconds, rounded down.
      REQUIRE(static_cast<double>(passed) <= burst + span * static_cast<double>(rate) * 1.001 + 1);
      if (budget.available(now) == 0) {
        REQUIRE(budget.next(now) > now);
        REQUIRE(budget.available(budget.next(now)) >= 1);
      }
    }
  }
}

TEST_CASE("a task queue runs a command on the other thread, or says that nobody is there",
          "[threads]") {
  TaskQueue tasks;
  int ran = 0;
  CHECK_FALSE(tasks.run([&](Picos) { ++ran; }, [] {}));
  CHECK(ran == 0);
  tasks.open();
  std::atomic<bool> stop{false};
  std::thread worker([&] {
    while (!stop.load()) tasks.take(Picos{7});
    tasks.refuse();
  });
  for (int i = 0; i < 100; ++i) {
    std::thread::id on;
    REQUIRE(tasks.run(
        [&](Picos now) { ran += static_cast<int>(now.count), on = std::this_thread::get_id(); },
        [] {}));
    REQUIRE(on == worker.get_id());
  }
  CHECK(ran == 700);
  // An exception of a command goes to its caller, and the other thread continues.
  CHECK_THROWS_AS(tasks.run([](Picos) { throw std::bad_alloc(); }, [] {}), std::bad_alloc);
  CHECK(tasks.run([&](Picos) { ++ran; }, [] {}));
  CHECK(ran == 701);
  tasks.close();
  stop = true;
  worker.join();
  CHECK_FALSE(tasks.run([&](Picos) { ++ran; }, [] {}));
}

TEST_CASE("source ports: a flow label's, or of the queue pair numbers") {
  // The low 14 bits, folded with the high 6, in the dynamic range.
  CHECK(source_port_of(0x00001, 1, 2) == 0xC001);
  CHECK(source_port_of(0xFC000, 1, 2) == (0xC000 | 0x3F));
  CHECK(source_port_of(0x04001, 1, 2) == 0xC000);
  CHECK(source_port_of(0, 17, 18) == source_port_of(0, 18, 17));
  CHECK(source_port_of(0, 17, 18) != source_port_of(0, 17, 19));
}

TEST_CASE("traffic classes: DSCP before service level, neither: the default") {
  attach::AddressVector v;
  CHECK_FALSE(traffic_class_of(v).has_value());
  v.service_level = 5;
  CHECK(traffic_class_of(v) == 5);
  v.traffic_class = 26 << 2;
  CHECK(traffic_class_of(v) == 5);  // it is not a global address: no traffic class
  v.global = 1;
  CHECK(traffic_class_of(v) == 3);
}

TEST_CASE("static rates are numbers of enum ibv_rate") {
  CHECK(static_rate_of(0) == Rate{0});
  CHECK(static_rate_of(5) == rate_from_gbps(5));
  CHECK(static_rate_of(3) == rate_from_gbps(10));
  CHECK(static_rate_of(24) == rate_from_mbps(1'275'000));
  CHECK_FALSE(static_rate_of(1).has_value());
  CHECK_FALSE(static_rate_of(25).has_value());
}

TEST_CASE("an allowance never exceeds its most") {
  Allowance a{0, 10};
  CHECK(a.take(10));
  CHECK_FALSE(a.take());
  a.give(3);
  CHECK_FALSE(a.take(4));
  CHECK(a.take(3));
  CHECK_FALSE(a.take(~std::uint64_t{0}));
}
