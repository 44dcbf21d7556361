// Receiver not ready: the requester waits as long as it is told, and as often as it may.
#include <catch2/catch.hpp>
#include <cstring>

#include "dataplane/wire/headers/aeth.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint8_t kTimer = 4;  // 40 us

LabOptions with_rnr(std::uint8_t retries) {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.qp.min_rnr_timer = kTimer;
  options.qp.rnr_retry = retries;
  return options;
}

TEST_CASE("a SEND waits for its receive request, however often with rnr_retry 7", "[transport]") {
  Lab lab(with_rnr(7));
  Lab::fill(lab.a().memory, 1);
  const Lab::Pair pair = lab.connect();
  // Several packets in the pipe: those behind the refused one must not be taken for a loss, or the
  // retries for losses would run out (7) long before the receiver is ready.
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 6 * kMtu));
  lab.post(0, pair.a, lab.request(WorkOpcode::send_imm, 2, 6 * kMtu, 0, 10, 77));
  CHECK_FALSE(lab.run(picos_from_micros(1000)));
  CHECK(lab.a().sent().empty());
  const auto& a = lab.a().counters();
  CHECK(a.rnr_received >= 20);
  CHECK(a.rnr_received <= 25);  // every 40 us and a round trip
  CHECK(a.naks_received == 0);
  CHECK(a.timeouts == 0);
  REQUIRE(lab.b().post_receive(5, 0, 6 * kMtu));
  REQUIRE(lab.b().post_receive(6, 6 * kMtu, 10));
  CHECK(lab.run(picos_from_micros(3000)));
  CHECK(lab.a().sent().size() == 2);
  const auto received = lab.b().received();
  REQUIRE(received.size() == 2);
  CHECK(received[0].wr_id == 5);
  CHECK(received[1].immediate == 77);
  CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), 6 * kMtu + 10) == 0);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("the wait is at least what the receiver asked for", "[transport]") {
  Lab lab(with_rnr(7));
  const Lab::Pair pair = lab.connect();
  std::vector<Picos> tries;
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    if (p.properties.operation == wire::Operation::send) tries.push_back(lab.now());
    return true;
  });
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 1));
  lab.run(picos_from_micros(500));
  REQUIRE(tries.size() > 5);
  for (std::size_t i = 1; i < tries.size(); ++i) {
    CHECK(tries[i] - tries[i - 1] >= wire::rnr_timer(kTimer));
    CHECK(tries[i] - tries[i - 1] <= wire::rnr_timer(kTimer) + picos_from_micros(3));
  }
}

TEST_CASE("rnr_retry tries, then rnr_retry_exceeded", "[transport]") {
  for (const std::uint8_t retries : {std::uint8_t{0}, std::uint8_t{3}}) {
    Lab lab(with_rnr(retries));
    const Lab::Pair pair = lab.connect();
    lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 3 * kMtu));
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 0, 0, 1));
    CHECK(lab.run(picos_from_micros(5000)));
    const auto sent = lab.a().sent();
    CAPTURE(int{retries});
    REQUIRE(sent.size() == 2);
    CHECK(sent[0].status == CompletionStatus::rnr_retry_exceeded);
    CHECK(sent[1].status == CompletionStatus::flushed);
    CHECK(lab.a().counters().rnr_received == retries + 1U);
    CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("WRITE with immediate needs a receive request at its end only", "[transport]") {
  Lab lab(with_rnr(7));
  Lab::fill(lab.a().memory, 2);
  const Lab::Pair pair = lab.connect();
  lab.post(0, pair.a, lab.request(WorkOpcode::write_imm, 1, 0, 0, 4 * kMtu, 5));
  CHECK_FALSE(lab.run(picos_from_micros(20)));
  CHECK(lab.b().counters().rx_data_packets == 3);
  CHECK(lab.b().counters().rnr_sent == 1);
  REQUIRE(lab.b().post_receive(1, 0, 0));
  CHECK(lab.run(picos_from_micros(5000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(lab.b().received().size() == 1);
  CHECK(lab.a().counters().retransmitted_packets == 1);
  CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), 4 * kMtu) == 0);
}

// An algorithm that has heard of the last byte gives up what it was granted. What the back-off
// brings back is work that it has to hear of.
TEST_CASE("whoever grants rates hears of what is sent again after a back-off", "[transport]") {
  for (const auto algorithm : {cc::AlgorithmId::cadence, cc::AlgorithmId::eqds,
                               cc::AlgorithmId::sird, cc::AlgorithmId::homa}) {
    for (const auto reliability : {Reliability::go_back_n, Reliability::selective}) {
      CAPTURE(static_cast<int>(algorithm), static_cast<int>(reliability));
      LabOptions options = with_rnr(7);
      options.qp.min_rnr_timer = 16;  // 2.56 ms: every grant and every lingering is over
      options.engine.reliability = reliability;
      options.engine.primary = choose_cc(algorithm, options);
      Lab lab(options);
      const Lab::Pair pair = lab.connect();
      lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 6 * kMtu));
      lab.run(picos_from_micros(1000));
      CHECK(lab.a().counters().rnr_received == 1);
      REQUIRE(lab.b().post_receive(5, 0, 6 * kMtu));
      CHECK(lab.run(picos_from_micros(20'000)));
      CHECK(lab.a().sent().size() == 1);
      CHECK(lab.b().received().size() == 1);
      CHECK(lab.leftovers().empty());
    }
  }
}

}  // namespace
}  // namespace paceline::transport::test
