// The send queue as a sequence of packets, without an engine.
#include "dataplane/transport/message/send_window.h"

#include <catch2/catch.hpp>
#include <deque>
#include <numeric>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/transport/qp_bench.h"

namespace paceline::transport::test {
namespace {

// Against a list of the packets in flight: what is acknowledged, given up and completed, with
// sequence numbers that wrap.
TEST_CASE("send window: bytes in flight and backlog are those of the packets, whatever comes",
          "[transport]") {
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U, 5U);
  CAPTURE(seed);
  Random random(seed);
  Bench b(0xFF'FFF0);
  RequesterState& r = b.qp.requester;
  std::deque<std::uint32_t> flying;  // bytes on the wire from una_psn on
  std::uint64_t posted_packets = 0, done_packets = 0, completed = 0;
  std::deque<std::uint64_t> ends;  // of each request, in packets since the beginning
  for (int step = 0; step < 400; ++step) {
    switch (random.below(4)) {
      case 0:
        if (r.queue.size() < 60) {
          const std::uint64_t packets = 1 + random.below(6);
          b.post(WorkOpcode::write, packets * Bench::kMtu - random.below(Bench::kMtu));
          ends.push_back(posted_packets += packets);
        }
        break;
      case 1:
        for (std::uint64_t n = random.below(8); n != 0 && r.position.request() != r.queue.tail();
             --n) {
          flying.push_back(b.send_next());
        }
        break;
      case 2: {
        if (flying.empty()) break;
        const auto n = static_cast<std::uint32_t>(1 + random.below(flying.size()));
        const std::uint64_t bytes =
            std::accumulate(flying.begin(), flying.begin() + n, std::uint64_t{0});
        const Psn next = r.position.oldest() + n;
        CHECK(SendWindow::advance(b.core, b.qp, next) == bytes);
        SendWindow::complete_before(b.core, b.qp, next);
        flying.erase(flying.begin(), flying.begin() + n);
        done_packets += n;
        break;
      }
      default: {
        if (random.below(4) != 0) break;
        const std::uint64_t bytes = std::accumulate(flying.begin(), flying.end(), std::uint64_t{0});
        const std::uint64_t had_sent = flying.size();
        CHECK(SendWindow::rewind(b.core, b.qp) == bytes);
        flying.clear();
        CHECK(r.position.next() == r.position.oldest());
        // The packets had arrived after all: they are skipped, and nothing was in flight.
        if (had_sent != 0 && random.below(2) == 0) {
          const Psn next = r.position.oldest() + static_cast<std::uint32_t>(had_sent);
          CHECK(SendWindow::advance(b.core, b.qp, next) == 0);
          SendWindow::complete_before(b.core, b.qp, next);
          done_packets += had_sent;
        }
        break;
      }
    }
    b.asked();
    const std::uint64_t bytes = std::accumulate(flying.begin(), flying.end(), std::uint64_t{0});
    REQUIRE(r.inflight_bytes == bytes);
    REQUIRE(b.context().inflight_bytes == bytes);
    REQUIRE(b.context().backlog_bytes == r.backlog_bytes);
    REQUIRE(distance(r.position.next(), r.position.oldest()) ==
            static_cast<std::int32_t>(flying.size()));
    for (const Completion& c : b.completed()) {
      REQUIRE(c.wr_id == ++completed);
      REQUIRE(ends.front() <= done_packets);
      ends.pop_front();
    }
    REQUIRE((ends.empty() || ends.front() > done_packets));
  }
  CHECK(completed > 10);
}

TEST_CASE("send window: the oldest READ that an acknowledgement skips", "[transport]") {
  Bench b;
  b.post(WorkOpcode::write, Bench::kMtu);
  b.post(WorkOpcode::read, 3 * Bench::kMtu);
  b.post(WorkOpcode::read, Bench::kMtu);
  const auto at = [&](std::uint32_t psn) { return SendWindow::unanswered_before(b.qp, Psn(psn)); };
  CHECK(at(Bench::kFirst + 1) == nullptr);
  REQUIRE(at(Bench::kFirst + 2) != nullptr);
  CHECK(at(Bench::kFirst + 5)->first_psn == Psn(Bench::kFirst + 1));
  CHECK(at(Bench::kFirst + 5)->packets == 3);
}

}  // namespace
}  // namespace paceline::transport::test
