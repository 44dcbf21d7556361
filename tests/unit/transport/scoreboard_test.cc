// The sender's window under selective repeat against a model of its packets, without an engine.
#include "dataplane/transport/message/scoreboard.h"

#include <catch2/catch.hpp>
#include <map>
#include <memory>

#include "dataplane/base/numbers/random.h"
#include "tests/unit/transport/qp_bench.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kWindow = 64;

struct SelectiveBench : Bench {
  explicit SelectiveBench(std::uint32_t first) : Bench(first) {
    qp.selective = std::make_unique<SelectiveState>(kWindow);
    qp.requester.peer_selective = true;
    Scoreboard::begin(core, qp);
    REQUIRE(qp.requester.selective);
  }
  // A packet of `extent` payload bytes at next_psn has left.
  void sent(std::uint32_t bytes, std::uint32_t extent) {
    RequesterState& r = qp.requester;
    r.inflight_bytes += bytes;
    context().inflight_bytes += bytes;
    Scoreboard::note_sent(core, qp, r.position.next(), bytes, extent, false);
    r.position.sent(false);
  }
};

TEST_CASE("scoreboard: what is in flight, lost and to be sent again is what the packets say",
          "[transport]") {
  enum class Fate { flying, lost, delivered };
  const std::uint64_t seed = GENERATE(1U, 2U, 3U, 4U, 5U);
  CAPTURE(seed);
  Random random(seed);
  SelectiveBench b(0xFF'FFC0);
  RequesterState& r = b.qp.requester;
  SelectiveSend& s = b.qp.selective->send;
  struct Sent {
    Fate fate;
    std::uint32_t bytes;
    std::uint32_t extent;
  };
  std::map<std::uint32_t, Sent> model;  // by offset from the first packet
  const Psn first = r.position.next();
  std::uint32_t next = 0;
  for (int step = 0; step < 500; ++step) {
    b.core.now = b.core.now + picos_from_micros(1);
    if (next < kWindow && random.below(3) == 0) {
      const auto extent = static_cast<std::uint32_t>(1 + random.below(1024));
      b.sent(extent + 80, extent);
      model[next++] = {Fate::flying, extent + 80, extent};
    } else if (next != 0) {
      const auto at = static_cast<std::uint32_t>(random.below(next));
      Sent& m = model[at];
      const Psn psn = first + at;
      switch (random.below(3)) {
        case 0: {
          const bool news = m.fate != Fate::delivered;
          CHECK(Scoreboard::mark_delivered(b.core, b.qp, psn) == (news ? m.bytes : 0));
          m.fate = Fate::delivered;
          break;
        }
        case 1:
          if (m.fate != Fate::flying) break;
          Scoreboard::mark_lost(b.core, b.qp, psn);
          m.fate = Fate::lost;
          break;
        default: {  // it came trimmed: lost, if it was in flight, and not if that was another copy
          const std::uint16_t port = s.window.at(psn).port;
          const std::uint32_t bytes = m.fate == Fate::flying ? m.bytes : 0;
          CHECK(Scoreboard::take_trim(b.core, b.qp, psn, port ^ 1U) == 0);
          CHECK(Scoreboard::take_trim(b.core, b.qp, psn, port) == bytes);
          if (m.fate == Fate::flying) m.fate = Fate::lost;
        }
      }
    }
    std::uint64_t flying = 0, again = 0;
    std::uint32_t lost = 0;
    for (const auto& [offset, m] : model) {
      flying += m.fate == Fate::flying ? m.bytes : 0;
      again += m.fate == Fate::lost ? m.extent : 0;
      lost += m.fate == Fate::lost ? 1 : 0;
    }
    REQUIRE(r.inflight_bytes == flying);
    REQUIRE(b.context().inflight_bytes == flying);
    REQUIRE(r.backlog_bytes == again);
    REQUIRE(s.window.lost() == lost);
    REQUIRE(r.repair == (lost != 0));
    REQUIRE(Scoreboard::repair_adds_up(b.qp));
    if (lost == 0) continue;
    std::uint32_t oldest = 0;
    while (model[oldest].fate != Fate::lost) ++oldest;
    REQUIRE(s.window.oldest_lost() == first + oldest);
  }
  CHECK(next == kWindow);
}

TEST_CASE("scoreboard: one that was sent before what has arrived is lost after the reordering",
          "[transport]") {
  SelectiveBench b(Bench::kFirst);
  SelectiveSend& s = b.qp.selective->send;
  s.round_trip.add(4'000);
  for (int i = 0; i < 3; ++i) {
    b.sent(1'104, 1'024);
    b.core.now = b.core.now + picos_from_micros(10);
  }
  CHECK(Scoreboard::find_lost(b.core, b.qp) == 0);  // nothing has arrived that was sent later
  CHECK(Scoreboard::mark_delivered(b.core, b.qp, Psn(Bench::kFirst + 1)) == 1'104);
  CHECK(Scoreboard::find_lost(b.core, b.qp) == 1'104);
  CHECK(s.window.at(Psn(Bench::kFirst)).has(sent_flag::lost));
  CHECK_FALSE(s.window.at(Psn(Bench::kFirst + 2)).has(sent_flag::lost));
  CHECK(b.core.counters.lost_packets == 1);
}

}  // namespace
}  // namespace paceline::transport::test
