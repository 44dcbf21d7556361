// What the owner of queue pairs can do beyond the verbs of a program: bound what one sends, give
// one up so that the peer learns of it, say that completions found no room.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

bool has_event(Engine& engine, AsyncEventKind kind, std::uint32_t qp_number) {
  std::array<AsyncEvent, 16> events;
  const std::size_t n = engine.poll_events(events);
  return std::any_of(events.begin(), events.begin() + n, [&](const AsyncEvent& event) {
    return event.kind == kind && event.qp_number == qp_number;
  });
}

std::uint64_t sent_bytes(const Lab::Side& side, Picos from) {
  std::uint64_t bytes = 0;
  for (const auto& d : side.port.departures()) bytes += d.at >= from ? d.wire_bytes : 0;
  return bytes;
}

TEST_CASE("a queue pair's limit holds over time, and others do not feel it", "[transport]") {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    LabOptions options;
    options.engine.reliability = reliability;
    options.qp.retransmit_timeout = picos_from_micros(1'000'000);
    Lab lab(options);
    const Lab::Pair slow = lab.connect();
    const Rate limit = rate_from_mbps(500);
    REQUIRE(lab.a().engine.limit_rate(lab.now(), slow.a, limit, 0));
    lab.post(0, slow.a, lab.request(WorkOpcode::write, 1, 0, 0, 1'000'000));
    const Picos span = picos_from_micros(8'000);
    lab.run(span);
    const auto bytes = static_cast<std::int64_t>(sent_bytes(lab.a(), Picos{0}));
    const auto ideal = static_cast<std::int64_t>(bytes_in(span, limit));
    CAPTURE(bytes, ideal);
    CHECK(std::abs(bytes - ideal) <= 2 * 4178);  // the packet in flight at either end

    const Lab::Pair fast = lab.connect(300, 400);
    const Picos from = lab.now();
    lab.post(0, fast.a, lab.request(WorkOpcode::write, 2, 0, 0, 1'000'000));
    lab.run(from + picos_from_micros(200));
    CHECK(sent_bytes(lab.a(), from) >= 1'000'000);

    // A limit can be lifted meanwhile: the rest goes at once.
    REQUIRE(lab.a().engine.limit_rate(lab.now(), slow.a, Rate{0}, 0));
    lab.run(lab.now() + picos_from_micros(400));
    CHECK(lab.a().sent().size() == 2);
  }
}

TEST_CASE("a limit begins with all of its burst", "[transport]") {
  LabOptions options;
  options.qp.retransmit_timeout = picos_from_micros(1'000'000);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  REQUIRE(lab.a().engine.limit_rate(lab.now(), pair.a, rate_from_mbps(100), 40'000));
  const Picos from = lab.now();
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 200'000));
  lab.run(from + picos_from_micros(100));
  CHECK(sent_bytes(lab.a(), from) >= 40'000);
  CHECK(sent_bytes(lab.a(), from) <= 40'000 + 2 * 4178 + 1250);
  CHECK_FALSE(lab.a().engine.limit_rate(lab.now(), 0xFFFFFF, Rate{0}, 0));
}

TEST_CASE("the peer of an abandoned queue pair goes to error at once", "[transport]") {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    LabOptions options;
    options.engine.reliability = reliability;
    {  // though it has nothing to send
      Lab lab(options);
      const Lab::Pair pair = lab.connect();
      lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 100'000));
      CHECK(lab.run(picos_from_micros(1'000)));
      lab.b().engine.abandon_qp(lab.now(), pair.b);
      lab.touch(1);
      lab.run(lab.now() + picos_from_micros(10));
      CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
      INFO("reliability " << static_cast<int>(reliability));
      CHECK(has_event(lab.a().engine, AsyncEventKind::qp_fatal, pair.a));
    }
    {  // with requests in progress
      Lab lab(options);
      const Lab::Pair pair = lab.connect();
      lab.post(0, pair.a, lab.request(WorkOpcode::write, 7, 0, 0, 3'000'000));
      lab.run(picos_from_micros(20));
      lab.b().engine.abandon_qp(lab.now(), pair.b);
      lab.touch(1);
      lab.run(lab.now() + picos_from_micros(10));
      CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
      const auto sent = lab.a().sent();
      REQUIRE(sent.size() == 1);
      CHECK(sent[0].wr_id == 7);
      CHECK(sent[0].status == CompletionStatus::remote_operational_error);
    }
  }
}

TEST_CASE("who says that completions had no room fails the queue's pairs", "[transport]") {
  Lab lab(LabOptions{});
  const Lab::Pair pair = lab.connect();
  lab.a().engine.overrun(lab.a().send_cq);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 100));
  lab.run(picos_from_micros(10));
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
  CHECK(has_event(lab.a().engine, AsyncEventKind::qp_fatal, pair.a));
}

}  // namespace
}  // namespace paceline::transport::test
