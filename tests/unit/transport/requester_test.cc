// The requester alone, without an engine: what it asks of the scheduler and of congestion control
// for each answer and each timer, and nothing more.
#include <catch2/catch.hpp>
#include <vector>

#include "tests/unit/transport/qp_bench.h"

namespace paceline::transport::test {
namespace {

using Kind = Action::Kind;

TEST_CASE("requester: an ACK is an event with its bytes, and frees a context that was held up",
          "[transport]") {
  Bench b;
  b.send(4);
  const std::uint64_t flown = b.context().inflight_bytes;
  b.answer(Bench::kFirst + 1, wire::Aeth::ack(0));
  auto asked = b.asked();
  REQUIRE(asked.kinds == std::vector{Kind::deliver});
  CHECK(asked.events[0].signal == cc::Signal::ack);
  CHECK(asked.events[0].acked_bytes == flown - b.context().inflight_bytes);
  CHECK_FALSE(asked.released);
  CHECK(b.qp.requester.position.oldest() == Psn(Bench::kFirst + 2));

  b.context().wants = 0;  // an algorithm that does not listen
  b.context().place = ContextPlace::blocked;
  b.answer(Bench::kFirst + 2, wire::Aeth::ack(0));
  asked = b.asked();
  CHECK(asked.kinds.empty());
  CHECK(asked.released);
  b.answer(Bench::kFirst + 2, wire::Aeth::ack(0));  // nothing new
  CHECK(b.asked().empty());
  CHECK(b.core.counters.stale_acks == 1);
}

TEST_CASE("requester: a sequence NAK goes back, then tells how much goes out again",
          "[transport]") {
  Bench b;
  b.send(4);
  const std::uint64_t packet = b.context().inflight_bytes / 4;
  b.answer(Bench::kFirst + 1, wire::Aeth::nak(0, wire::NakCode::psn_sequence_error));
  const auto asked = b.asked();
  REQUIRE(asked.kinds == std::vector{Kind::resume, Kind::deliver});
  CHECK(asked.events[0].signal == cc::Signal::nack);
  // The first packet of a WRITE has the RETH and is longer.
  CHECK(asked.events[0].lost_bytes + asked.events[0].acked_bytes == 4 * packet);
  CHECK(b.context().inflight_bytes == 0);
  CHECK(b.qp.requester.backlog_bytes == 3 * Bench::kMtu);
  CHECK(b.qp.requester.position.next() == Psn(Bench::kFirst + 1));
}

TEST_CASE("requester: an RNR NAK keeps the queue pair from sending until its time is over",
          "[transport]") {
  Bench b;
  b.send(2);
  b.answer(Bench::kFirst, wire::Aeth::rnr_nak(0, 12));
  const auto asked = b.asked();
  CHECK(asked.kinds == std::vector{Kind::settle});
  CHECK(asked.released);
  CHECK_FALSE(Requester::has_work(b.qp, b.core.now));
  CHECK(Requester::has_work(b.qp, b.core.now + wire::rnr_timer(12)));
}

TEST_CASE("requester: a timeout goes back; when no try is left the work is dropped",
          "[transport]") {
  Bench b;
  b.send(2);
  b.core.now = b.core.now + b.qp.config.retransmit_timeout;
  b.requester.on_timer(b.qp);
  auto asked = b.asked();
  REQUIRE(asked.kinds == std::vector{Kind::resume, Kind::deliver});
  CHECK(asked.events[0].signal == cc::Signal::timeout);

  Packet* const packet = b.core.pool.alloc();
  REQUIRE(b.requester.build_next(b.qp, *packet));
  b.context().inflight_bytes += packet->wire_bytes;
  b.core.pool.free(packet);
  b.core.now = b.core.now + b.qp.config.retransmit_timeout;
  b.requester.on_timer(b.qp);
  asked = b.asked();
  CHECK(asked.kinds == std::vector{Kind::dropped, Kind::idle});
  CHECK(b.qp.state == QpState::error);
  CHECK(b.context().inflight_bytes == 0);
  CHECK(b.context().backlog_bytes == 0);
}

TEST_CASE("actions: more than there is room for are kept, in order", "[transport]") {
  bool any = false;
  Actions actions(any);
  CHECK_FALSE(any);
  IntStack records;
  for (std::uint32_t i = 0; i < 100; ++i) {
    records.path = static_cast<std::uint16_t>(i);
    actions.deliver(i, i % 2 == 0 ? &records : nullptr).lost_bytes = i;
  }
  actions.released(7);
  CHECK(any);
  std::uint32_t next = 0;
  bool last = false;
  actions.take_all(
      [&](const Action& action) {
        CHECK(action.context == next);
        CHECK(action.event.lost_bytes == next);
        if (next % 2 == 0) {
          REQUIRE(action.event.int_stack == &action.records);
          CHECK(action.records.path == next);
        } else {
          CHECK(action.event.int_stack == nullptr);
        }
        ++next;
      },
      [&](std::uint32_t context) { last = context == 7 && next == 100; });
  CHECK(last);
  CHECK_FALSE(any);
}

}  // namespace
}  // namespace paceline::transport::test
