// The end of a queue pair's work, without an engine.
#include "dataplane/transport/message/qp_failure.h"

#include <catch2/catch.hpp>

#include "dataplane/transport/interface/receive_queue.h"
#include "tests/unit/transport/qp_bench.h"

namespace paceline::transport::test {
namespace {

TEST_CASE("failure: one request has the reason, all others are flushed, receives too",
          "[transport]") {
  Bench b;
  ReceiveQueue receives(4, ReceiveSharing::owned);
  b.qp.config.receive_queue = &receives;
  b.qp.config.receive_cq = &b.completions;
  REQUIRE(receives.post({.wr_id = 50, .address = 0, .length = 8, .local_key = b.region}));
  b.send(2);
  b.send(2);
  b.post(WorkOpcode::write, Bench::kMtu);
  QpFailure::fail(b.core, b.qp, CompletionStatus::remote_access_error, Psn(Bench::kFirst + 3));
  const auto done = b.completed();
  REQUIRE(done.size() == 4);
  CHECK(done[0].status == CompletionStatus::flushed);
  CHECK(done[1].status == CompletionStatus::remote_access_error);
  CHECK(done[2].status == CompletionStatus::flushed);
  CHECK(done[3].wr_id == 50);
  CHECK(done[3].opcode == CompletionOpcode::receive);
  CHECK(b.qp.state == QpState::error);
  CHECK(b.context().inflight_bytes == 0);
  CHECK(b.context().backlog_bytes == 0);
  CHECK(b.asked().kinds == std::vector{Action::Kind::dropped, Action::Kind::idle});
  QpFailure::fail(b.core, b.qp, CompletionStatus::flushed);  // once is enough
  CHECK(b.completed().empty());
}

TEST_CASE("failure: a local reason ends a reliable connection, but only the sends of UC",
          "[transport]") {
  const bool unreliable = GENERATE(false, true);
  Bench b;
  b.qp.unreliable = unreliable;
  if (unreliable) b.qp.config.type = QpType::uc;
  b.post(WorkOpcode::send, 8);
  b.post(WorkOpcode::send, 8);
  QpFailure::fail_sends(b.core, b.qp, CompletionStatus::local_protection_error);
  const auto done = b.completed();
  REQUIRE(done.size() == 2);
  CHECK(done[0].status == CompletionStatus::local_protection_error);
  CHECK(done[1].status == CompletionStatus::flushed);
  CHECK(b.qp.state == (unreliable ? QpState::sqe : QpState::error));
  CHECK(b.context().backlog_bytes == 0);
  b.asked();
}

}  // namespace
}  // namespace paceline::transport::test
