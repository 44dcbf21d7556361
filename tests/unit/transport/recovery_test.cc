// Go-back-N: one NAK per gap, timeouts, the end of patience, and answers that come late.
#include <catch2/catch.hpp>
#include <cstring>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

bool is_data(const wire::ParsedPacket& p) {
  return p.properties.operation == wire::Operation::write ||
         p.properties.operation == wire::Operation::send;
}
bool is_answer(const wire::ParsedPacket& p) {
  return p.properties.operation == wire::Operation::acknowledge;
}

TEST_CASE("one lost packet brings one NAK and one return to it", "[transport]") {
  Lab lab(small_packets());
  Lab::fill(lab.a().memory, 1);
  const Lab::Pair pair = lab.connect(100, 0);
  int lost = 0;
  lab.b().cable.set_script(
      drop_if([&](const auto& p) { return is_data(p) && p.psn.value() == 110 && lost++ == 0; }));
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 100 * kMtu)) ==
          PostResult::ok);
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::success);
  CHECK(equal_memories(lab, 100 * kMtu));
  CHECK(lab.b().counters().naks_sent == 1);
  CHECK(lab.a().counters().naks_received == 1);
  CHECK(lab.a().counters().timeouts == 0);
  // Packets in flight when the NAK came back are dropped there and sent again: the loss itself and
  // about a round trip's worth (2 us at 100 Gb/s: 23 packets of 1102 bytes on the wire).
  CHECK(lab.b().counters().out_of_sequence > 10);
  CHECK(lab.b().counters().out_of_sequence < 40);
  CHECK(lab.a().counters().retransmitted_packets == lab.b().counters().out_of_sequence + 1);
  CHECK(lab.b().counters().duplicates == 0);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("each gap has a NAK of its own", "[transport]") {
  Lab lab(small_packets());
  Lab::fill(lab.a().memory, 2);
  const Lab::Pair pair = lab.connect(0, 0);
  std::vector<bool> lost(200);
  lab.b().cable.set_script(drop_if([&](const auto& p) {
    const std::uint32_t psn = p.psn.value();
    if (!is_data(p) || psn % 40 != 5 || lost[psn]) return false;
    lost[psn] = true;
    return true;
  }));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 200 * kMtu));
  CHECK(lab.run(picos_from_micros(10'000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(lab.b().counters().naks_sent == 5);
  CHECK(equal_memories(lab, 200 * kMtu));
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::rts);
}

TEST_CASE("a lost last packet, and a lost last ACK, cost one timeout each", "[transport]") {
  for (const bool lose_data : {true, false}) {
    LabOptions options = small_packets();
    options.qp.retransmit_timeout = picos_from_micros(50);
    Lab lab(options);
    Lab::fill(lab.a().memory, 3);
    const Lab::Pair pair = lab.connect(100, 0);
    int lost = 0;
    auto& cable = lose_data ? lab.b().cable : lab.a().cable;
    cable.set_script(drop_if([&](const auto& p) {
      return (lose_data ? is_data(p) : is_answer(p)) && p.psn.value() == 104 && lost++ == 0;
    }));
    lab.post(0, pair.a, lab.request(WorkOpcode::write_imm, 1, 0, 0, 5 * kMtu, 9));
    lab.b().post_receive(1, 0, 0);
    CHECK(lab.run(picos_from_micros(10'000)));
    CAPTURE(lose_data);
    REQUIRE(lab.a().sent().size() == 1);
    CHECK(lab.b().received().size() == 1);  // not twice
    CHECK(equal_memories(lab, 5 * kMtu));
    CHECK(lab.a().counters().timeouts == 1);
    CHECK(lab.a().counters().retransmitted_packets == 1);
    CHECK(lab.b().counters().duplicates == (lose_data ? 0 : 1));
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE(
    "a port that takes nothing any more: all queue pairs fail, and new ones work once it does",
    "[transport]") {
  for (const auto algorithm :
       {cc::AlgorithmId::fixed, cc::AlgorithmId::dcqcn, cc::AlgorithmId::cadence}) {
    LabOptions options = small_packets();
    options.engine.primary = choose_cc(algorithm, options);
    options.qp.retransmit_timeout = picos_from_micros(1'000);
    options.qp.retry_count = 3;
    Lab lab(options);
    CAPTURE(static_cast<int>(algorithm));
    const Lab::Pair busy = lab.connect();
    const Lab::Pair idle = lab.connect(300, 400);
    lab.post(0, busy.a, lab.request(WorkOpcode::write, 1, 0, 0, 64 * kMtu));
    CHECK_FALSE(lab.run(picos_from_micros(4)));
    lab.a().port.refuse_calls(~0U);
    CHECK_FALSE(lab.run(picos_from_micros(50'000)));
    lab.post(0, idle.a, lab.request(WorkOpcode::write, 2, 0, 0, 2 * kMtu));
    lab.run(picos_from_micros(400'000));
    const auto failed = lab.a().sent();
    REQUIRE(failed.size() == 2);
    for (const Completion& c : failed) CHECK(c.status == CompletionStatus::retry_exceeded);
    CHECK(lab.a().counters().tx_stalled > 0);

    lab.a().port.refuse_calls(0);
    Lab::fill(lab.a().memory, 5);
    const Lab::Pair later = lab.connect(500, 600);
    lab.post(0, later.a, lab.request(WorkOpcode::write, 3, 0, 0, 64 * kMtu));
    lab.run(picos_from_micros(800'000));
    const auto done = lab.a().sent();
    REQUIRE(done.size() == 1);
    CHECK(done[0].status == CompletionStatus::success);
    CHECK(equal_memories(lab, 64 * kMtu));
  }
}

TEST_CASE("a dead path: retries, then retry_exceeded and a flush in order", "[transport]") {
  LabOptions options = small_packets();
  options.qp.retransmit_timeout = picos_from_micros(50);
  options.qp.retry_count = 3;
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  lab.b().cable.set_script(drop_if([](const auto&) { return true; }));
  for (std::uint64_t id = 0; id < 3; ++id) {
    WorkRequest request = lab.request(WorkOpcode::write, id, 0, 0, 2 * kMtu);
    request.signaled = false;  // a failure is told all the same
    REQUIRE(lab.post(0, pair.a, request) == PostResult::ok);
  }
  CHECK(lab.run(picos_from_micros(10'000)));
  auto sent = lab.a().sent();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].status == CompletionStatus::retry_exceeded);
  CHECK(sent[1].status == CompletionStatus::flushed);
  CHECK(sent[2].status == CompletionStatus::flushed);
  for (std::uint64_t id = 0; id < 3; ++id) CHECK(sent[id].wr_id == id);
  // The first try and three more: the fourth expiry gives up.
  CHECK(lab.a().counters().timeouts == 4);
  CHECK(sent[0].at >= picos_from_micros(200));
  CHECK(sent[0].at < picos_from_micros(205));
  CHECK(lab.a().counters().retransmitted_packets == 3 * 6);
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
  // Work posted to a queue pair in error completes as flushed.
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::send, 7, 0, 0, 1)) == PostResult::ok);
  sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::flushed);
  CHECK(sent[0].wr_id == 7);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("progress renews patience", "[transport]") {
  LabOptions options = small_packets();
  options.qp.retransmit_timeout = picos_from_micros(50);
  options.qp.retry_count = 2;
  Lab lab(options);
  Lab::fill(lab.a().memory, 4);
  const Lab::Pair pair = lab.connect(0, 0);
  // Each packet is lost twice: as many timeouts in all as would end it five times over.
  std::vector<int> tries(10);
  lab.b().cable.set_script(
      drop_if([&](const auto& p) { return is_data(p) && ++tries[p.psn.value()] <= 2; }));
  for (std::uint64_t id = 0; id < 5; ++id) {
    lab.post(0, pair.a, lab.request(WorkOpcode::write, id, id * kMtu, id * kMtu, kMtu));
    CHECK(lab.run(lab.now() + picos_from_micros(10'000)));
  }
  CHECK(lab.a().sent().size() == 5);
  CHECK(lab.a().counters().timeouts == 10);
  CHECK(equal_memories(lab, 5 * kMtu));
}

// The timer fires, the requester goes back, and only then the ACK of everything arrives: there is
// nothing left to repeat, and the queue pair must leave the ring of those with work.
TEST_CASE("an ACK that arrives after the timeout takes back the retransmission", "[transport]") {
  for (const std::uint64_t more : {0U, 1U}) {
    LabOptions options = small_packets();
    options.delay = picos_from_micros(30);
    options.qp.retransmit_timeout = picos_from_micros(40);  // shorter than the round trip
    // Slow enough that the second copy of packet 0 keeps the pacer busy when the ACK comes.
    const std::pair<std::string_view, double> rate[] = {{"rate_mbps", 100}};
    options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, rate);
    options.engine.fallback = options.engine.primary;
    Lab lab(options);
    Lab::fill(lab.a().memory, 5);
    const Lab::Pair pair = lab.connect();
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, kMtu));
    if (more != 0) lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, kMtu, kMtu, kMtu));
    CHECK(lab.run(picos_from_micros(10'000)));
    CAPTURE(more);
    CHECK(lab.a().sent().size() == 1 + more);
    CHECK(lab.a().counters().timeouts >= 1);
    CHECK(equal_memories(lab, (1 + more) * kMtu));
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("a NAK that arrives twice counts once", "[transport]") {
  LabOptions options = small_packets();
  options.qp.retry_count = 1;  // a second NAK without progress would be the end
  Lab lab(options);
  Lab::fill(lab.a().memory, 6);
  const Lab::Pair pair = lab.connect(0, 0);
  int lost = 0;
  lab.b().cable.set_script(
      drop_if([&](const auto& p) { return is_data(p) && p.psn.value() == 3 && lost++ == 0; }));
  lab.a().cable.set_script([](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.duplicate = is_answer(p) && p.ext.aeth.kind() == wire::AethKind::nak;
    return true;
  });
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 8 * kMtu));
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::success);
  CHECK(lab.a().counters().naks_received == 1);
  CHECK(lab.a().counters().stale_acks == 1);
  CHECK(equal_memories(lab, 8 * kMtu));
}

}  // namespace
}  // namespace paceline::transport::test
