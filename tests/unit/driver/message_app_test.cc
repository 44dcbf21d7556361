// The application of an emulated host: what it posts, when, and on which queue pair.

#include "dataplane/driver/traffic/message_app.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "dataplane/driver/traffic/ideal.h"
#include "tests/unit/driver/driver_support.h"

namespace paceline {
namespace {

TEST_CASE("message app: alone in the fabric a message takes its ideal time", "[message_app]") {
  const config::Scenario s = quiet_star(3);
  const IdealClock clock(s, 2);
  for (const std::uint64_t bytes : {1ULL, 64ULL, 4096ULL, 4097ULL, 65'536ULL, 1'000'000ULL}) {
    CAPTURE(bytes);
    VirtualWorld world(s, plan_of({{.src = 1, .dst = 2, .bytes = bytes, .start = Picos{12'345}}}),
                       checked());
    REQUIRE(world.run() == RunEnd::completed);
    const MessageRecord& record = world.records()[0];
    CHECK(record.ready.count == 12'345);
    CHECK_FALSE(record.failed);
    CHECK((record.completed - record.ready).count == clock.fct(bytes).count);
  }
}

TEST_CASE("message app: around a ring each step waits for the reception of the one before",
          "[message_app]") {
  // Step k goes from host k to host k + 1 (modulo 4), twice around; step 5 computes for 7 us first,
  // step 6 may not start before 100 us.
  constexpr std::uint32_t kSteps = 8;
  MessagePlan plan;
  for (std::uint32_t k = 0; k < kSteps; ++k) {
    PlannedMessage m{.src = k % 4, .dst = (k + 1) % 4, .bytes = 4096};
    if (k > 0) m.after = k - 1;
    if (k == 5) m.gap = picos_from_micros(7);
    if (k == 6) m.start = picos_from_micros(100);
    plan.messages.push_back(m);
  }
  VirtualWorld world(quiet_star(4), plan, checked());
  REQUIRE(world.run() == RunEnd::completed);
  const auto& records = world.records();
  CHECK(records[0].ready.count == 0);
  for (std::uint32_t k = 1; k < kSteps; ++k) {
    CAPTURE(k);
    // Posted on an arrival, a message leaves behind the 86 bytes of that arrival's ACK.
    const bool behind_ack = k - 1 != 0 && k - 1 != 5 && k - 1 != 6;
    const std::int64_t arrival =
        records[k - 1].ready.count + (behind_ack ? 86 * 80 : 0) + kArrivalPs;
    if (k == 5) {
      CHECK(records[k].ready.count == arrival + 7'000'000);
    } else if (k == 6) {
      CHECK(records[k].ready.count == 100'000'000);
    } else {
      CHECK(records[k].ready.count == arrival);  // reception, not the sender's completion
    }
    CHECK(records[k - 1].completed.count == arrival + kAckPs);
  }
}

TEST_CASE("message app: several messages may wait for one", "[message_app]") {
  VirtualWorld world(quiet_star(4),
                     plan_of({{.src = 0, .dst = 1, .bytes = 4096},
                              {.src = 1, .dst = 2, .bytes = 4096, .after = 0, .lane = 1},
                              {.src = 1, .dst = 3, .bytes = 4096, .after = 0, .lane = 2}}),
                     checked());
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.records()[1].ready.count == kArrivalPs);
  CHECK(world.records()[2].ready.count == kArrivalPs);
}

TEST_CASE("message app: losses delay a dependant, they never let it run ahead", "[message_app]") {
  config::Scenario s = quiet_star(2);
  s.fabric.loss = 0.05;
  s.transport.retransmit_timeout = picos_from_micros(50);
  MessagePlan plan;
  for (std::uint32_t k = 0; k < 40; ++k) {
    PlannedMessage m{.src = k % 2, .dst = (k + 1) % 2, .bytes = 20'000};
    if (k > 0) m.after = k - 1;
    plan.messages.push_back(m);
  }
  VirtualWorld world(s, plan, checked());
  REQUIRE(world.run() == RunEnd::completed);
  REQUIRE(world.messages_failed() == 0);
  REQUIRE(world.network().stats().total_drops() > 0);
  const IdealClock clock(s, 2);
  const Picos least = clock.fct(20'000) - Picos{kAckPs};
  for (std::uint32_t k = 1; k < 40; ++k) {
    CAPTURE(k);
    const auto& before = world.records()[k - 1];
    // No sooner than the whole message could be there; the completion at its sender may come later
    // than that, for its ACK may be lost.
    CHECK(world.records()[k].ready >= before.ready + least);
  }
}

TEST_CASE("message app: a lane keeps its order, another lane does not wait for it",
          "[message_app]") {
  // A long message, then short ones: on lane 0 they queue behind it, on lane 1 not.
  VirtualWorld world(quiet_star(2),
                     plan_of({{.src = 0, .dst = 1, .bytes = 2'000'000},
                              {.src = 0, .dst = 1, .bytes = 100, .start = Picos{1000}},
                              {.src = 0, .dst = 1, .bytes = 100, .start = Picos{1000}, .lane = 1},
                              {.src = 0, .dst = 1, .bytes = 100, .start = Picos{2000}}}),
                     checked());
  REQUIRE(world.run() == RunEnd::completed);
  const auto& r = world.records();
  CHECK(queue_pairs(world, 0) == 2);
  CHECK(r[0].completed < r[1].completed);
  CHECK(r[1].completed <= r[3].completed);
  CHECK(r[2].completed < r[0].completed);
}

TEST_CASE("message app: more messages than a send queue holds go out in order", "[message_app]") {
  MessagePlan plan;
  for (std::uint32_t k = 0; k < 500; ++k) {
    plan.messages.push_back({.src = 0, .dst = 1, .bytes = 300});
  }
  VirtualWorld world(quiet_star(2), plan, checked());
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(queue_pairs(world, 0) == 1);
  for (std::uint32_t k = 1; k < 500; ++k) {
    CHECK(world.records()[k - 1].completed <= world.records()[k].completed);
  }
}

TEST_CASE("message app: pooled messages take an idle queue pair or a new one", "[message_app]") {
  const auto pooled = [](std::uint64_t bytes, std::int64_t start_us) {
    return PlannedMessage{.src = 0,
                          .dst = 1,
                          .bytes = bytes,
                          .start = picos_from_micros(start_us),
                          .lane = kNoMessage};
  };
  // Two at once need two queue pairs; those that come one by one later reuse them.
  VirtualWorld world(quiet_star(3),
                     plan_of({pooled(1'000'000, 0), pooled(100, 0), pooled(100, 300),
                              pooled(100, 400), pooled(100, 500)}),
                     checked());
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(queue_pairs(world, 0) == 2);
  CHECK(queue_pairs(world, 1) == 2);
  CHECK(queue_pairs(world, 2) == 0);
  CHECK(world.records()[1].completed < world.records()[0].completed);

  // The pool is per destination.
  PlannedMessage elsewhere = pooled(100, 300);
  elsewhere.dst = 2;
  VirtualWorld two(quiet_star(3), plan_of({pooled(100, 0), elsewhere}), checked());
  REQUIRE(two.run() == RunEnd::completed);
  CHECK(queue_pairs(two, 0) == 2);
}

TEST_CASE("message app: a message beyond 1 GiB is posted in pieces and completes once",
          "[message_app][slow]") {
  config::Scenario s = quiet_star(2);
  s.transport.ack_every = 64;  // fewer packets to run
  const std::uint64_t bytes = (std::uint64_t{1} << 30) + 5;
  VirtualWorld world(s, plan_of({{.src = 0, .dst = 1, .bytes = bytes},
                                 {.src = 1, .dst = 0, .bytes = 4096, .after = 0}}));
  REQUIRE(world.run() == RunEnd::completed);
  CHECK(world.problem().empty());
  CHECK(world.engine(0).counters().completions == 2);  // two pieces; the second is the message's
  CHECK(world.engine(1).counters().rx_data_bytes == bytes);
  CHECK(world.messages_completed() == 2);
  // A message that waits for this one waits for its last piece.
  const std::int64_t least = static_cast<std::int64_t>(bytes) * 80;
  CHECK(world.records()[1].ready.count > least);
  CHECK(world.records()[0].completed > world.records()[1].ready);
}

TEST_CASE("message app: a failed queue pair fails its messages, the others go on",
          "[message_app]") {
  config::Scenario s = quiet_star(3);
  s.fabric.loss = 1.0;
  s.transport.retransmit_timeout = picos_from_micros(20);
  s.transport.retry_count = 2;
  VirtualWorld world(s,
                     plan_of({{.src = 0, .dst = 1, .bytes = 10'000},
                              {.src = 0, .dst = 1, .bytes = 10'000},
                              {.src = 2, .dst = 1, .bytes = 10'000},
                              {.src = 0, .dst = 1, .bytes = 10, .start = picos_from_micros(900)}}),
                     checked());
  CHECK(world.run() == RunEnd::completed);
  CHECK(world.messages_failed() == 4);
  CHECK(world.messages_completed() == 0);
  CHECK(world.problem().empty());
  for (const MessageRecord& record : world.records()) CHECK(record.failed);
  CHECK(world.records()[3].completed == picos_from_micros(900));  // refused at once
}

}  // namespace
}  // namespace paceline
