// Which request may begin, without an engine.
#include "dataplane/transport/message/request_order.h"

#include <catch2/catch.hpp>

#include "tests/unit/transport/qp_bench.h"

namespace paceline::transport::test {
namespace {

bool waits(const Bench& b) { return (b.qp.requester.stops & requester_stop::order) != 0; }

TEST_CASE("request order: so many READs are outstanding and no more", "[transport]") {
  Bench b(Bench::kFirst, 2);
  for (int i = 0; i < 3; ++i) b.post(WorkOpcode::read, Bench::kMtu);
  b.post(WorkOpcode::write, Bench::kMtu);
  b.send_next();
  CHECK_FALSE(waits(b));
  b.send_next();
  CHECK(waits(b));  // the third READ; the WRITE behind it waits, too
  CHECK_FALSE(Requester::has_work(b.qp, b.core.now));
  --b.qp.requester.outstanding_reads;
  RequestOrder::check(b.qp);
  CHECK_FALSE(waits(b));
}

TEST_CASE("request order: a fence waits for READs before it, and for nothing else", "[transport]") {
  Bench b;
  b.post(WorkOpcode::write, Bench::kMtu);
  b.post(WorkOpcode::write, Bench::kMtu, true);
  b.post(WorkOpcode::read, Bench::kMtu);
  b.post(WorkOpcode::write, Bench::kMtu, true);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(waits(b));
    b.send_next();
  }
  CHECK(waits(b));
  b.qp.requester.outstanding_reads = 0;
  RequestOrder::check(b.qp);
  CHECK_FALSE(waits(b));
}

TEST_CASE("request order: of the first message beyond the credits one packet goes", "[transport]") {
  Bench b;
  RequestOrder::on_credits(b.core, b.qp, wire::Aeth::ack(0, 1));  // one receive request
  b.post(WorkOpcode::send, 2 * Bench::kMtu);
  b.post(WorkOpcode::send, 2 * Bench::kMtu);
  for (int i = 0; i < 3; ++i) {
    CHECK_FALSE(waits(b));
    b.send_next();
  }
  CHECK(waits(b));
  RequestOrder::on_credits(b.core, b.qp, wire::Aeth::ack(0, 0));  // older, and says less
  CHECK(waits(b));
  CHECK(b.qp.requester.credit_limit == 1);
  RequestOrder::on_credits(b.core, b.qp, wire::Aeth::ack(1, 1));
  CHECK_FALSE(waits(b));
  b.asked();
}

TEST_CASE("request order: a limit that comes late does not stop the first message for ever",
          "[transport]") {
  Bench b;
  for (int i = 0; i < 4; ++i) b.post(WorkOpcode::send, Bench::kMtu);
  b.send_next();
  b.send_next();
  b.answer(Bench::kFirst + 1, wire::Aeth::ack(2));  // two are complete, and no limit is known
  RequestOrder::on_credits(b.core, b.qp, wire::Aeth::ack(0, 1));  // overtaken: one message in all
  CHECK_FALSE(waits(b));                                          // the third asks for news
  b.send_next();
  CHECK(waits(b));
  b.asked();
}

TEST_CASE("request order: draining ends what was begun, says so once, and can be taken back",
          "[transport]") {
  Bench b;
  b.post(WorkOpcode::write, 2 * Bench::kMtu);
  b.post(WorkOpcode::write, Bench::kMtu);
  b.send_next();
  RequestOrder::drain(b.core, b.qp, true);
  CHECK_FALSE(waits(b));  // the first is in progress
  b.send_next();
  RequestOrder::check(b.qp);
  CHECK(waits(b));
  AsyncEvent event;
  CHECK(b.core.events.poll({&event, 1}) == 0);
  b.answer(Bench::kFirst + 1, wire::Aeth::ack(1));
  REQUIRE(b.core.events.poll({&event, 1}) == 1);
  CHECK(event.kind == AsyncEventKind::sq_drained);
  RequestOrder::undrain(b.core, b.qp);
  CHECK_FALSE(waits(b));
  b.asked();
}

}  // namespace
}  // namespace paceline::transport::test
