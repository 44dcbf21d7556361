// What an engine does with many packets in one poll, as polls in real time find them: how many it
// takes, how it answers them, and how much of lost time its pacer makes up for.
#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kMessages = 100;

LabOptions burst_options() {
  LabOptions options = small_packets();
  options.qp.retransmit_timeout = picos_from_micros(100'000);
  options.qp.send_queue_depth = 256;
  return options;
}

// SENDs of one packet each, which all wait for b when its host continues after 50 us.
Lab::Pair send_into_a_stop(Lab& lab) {
  const Lab::Pair pair = lab.connect();
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    REQUIRE(lab.b().post_receive(i, std::uint64_t{i} * kMtu, kMtu));
  }
  lab.run(picos_from_micros(10));
  lab.stop_host(1, {lab.now(), lab.now() + picos_from_micros(50), true});
  Lab::fill(lab.a().memory, 3);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    const std::uint64_t at = std::uint64_t{i} * kMtu;
    REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::send, i, at, at, kMtu)) == PostResult::ok);
  }
  return pair;
}

void check_all_arrived(Lab& lab) {
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == kMessages);
  for (std::uint32_t i = 0; i < kMessages; ++i) {
    CHECK(sent[i].wr_id == i);
    CHECK(sent[i].status == CompletionStatus::success);
  }
  CHECK(lab.b().received().size() == kMessages);
  CHECK(equal_memories(lab, kMessages * kMtu));
  CHECK(lab.a().counters().retransmitted_packets == 0);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("a later ACK takes the place of one of the same poll", "[transport]") {
  const bool coalesces = GENERATE(false, true);
  LabOptions options = burst_options();
  options.engine.coalesce_acks = coalesces;
  Lab lab(options);
  send_into_a_stop(lab);
  CHECK(lab.run());
  check_all_arrived(lab);
  const auto& counters = lab.b().counters();
  // Each SEND asks for an ACK; each is sent or replaced.
  CHECK(counters.acks_sent + counters.acks_coalesced == kMessages);
  // Answers leave after every 16 packets taken, so a hundred at once are seven ACKs. A few packets
  // of the hundred may come after the stop, one at a time.
  if (coalesces) {
    CHECK(counters.acks_sent <= 20);
  } else {
    CHECK(counters.acks_coalesced == 0);
  }
}

TEST_CASE("ACKs of different queue pairs do not take each other's place", "[transport]") {
  LabOptions options = burst_options();
  options.engine.coalesce_acks = true;
  Lab lab(options);
  // More than there are places for ACKs that wait.
  constexpr std::uint32_t kPairs = 20;
  std::vector<Lab::Pair> pairs;
  for (std::uint32_t i = 0; i < kPairs; ++i) pairs.push_back(lab.connect(100 * i, 50));
  lab.run(picos_from_micros(10));
  lab.stop_host(1, {lab.now(), lab.now() + picos_from_micros(50), true});
  Lab::fill(lab.a().memory, 4);
  for (std::uint32_t i = 0; i < 5 * kPairs; ++i) {
    const std::uint64_t at = std::uint64_t{i} * kMtu;
    REQUIRE(lab.post(0, pairs[i % kPairs].a, lab.request(WorkOpcode::write, i, at, at, kMtu)) ==
            PostResult::ok);
  }
  CHECK(lab.run());
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 5 * kPairs);
  CHECK(std::all_of(sent.begin(), sent.end(),
                    [](const Completion& c) { return c.status == CompletionStatus::success; }));
  CHECK(equal_memories(lab, std::size_t{5} * kPairs * kMtu));
  CHECK(lab.b().counters().acks_sent + lab.b().counters().acks_coalesced == 5 * kPairs);
  CHECK(lab.a().counters().retransmitted_packets == 0);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("a poll takes as many bursts as it is told to", "[transport]") {
  const std::uint32_t bursts = GENERATE(0U, 1U, 2U);
  LabOptions options = burst_options();
  options.engine.receive_bursts = bursts;
  Lab lab(options);
  send_into_a_stop(lab);
  std::uint64_t before = 0;
  std::uint64_t most = 0;
  lab.on_poll = [&](unsigned side) {
    if (side != 1) return;
    most = std::max(most, lab.b().counters().rx_packets - before);
    before = lab.b().counters().rx_packets;
  };
  CHECK(lab.run());
  check_all_arrived(lab);
  if (bursts == 0) {
    CHECK(most > 64);
  } else {
    CHECK(most == 16 * bursts);
  }
}

// A paced WRITE whose sender's host stops for 100 us, 24 packets' time, after 200 us of a
// millisecond.
Picos paced_across_stop(Picos catch_up) {
  LabOptions options = small_packets();
  options.qp.retransmit_timeout = picos_from_micros(100'000);
  options.engine.pacing_catch_up = catch_up;
  const std::pair<std::string_view, double> params[] = {{"rate_mbps", 2000.0},
                                                        {"window_bytes", 0.0}};
  options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, params);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  lab.run(picos_from_micros(10));
  const Picos begun = lab.now();
  lab.stop_host(0, {begun + picos_from_micros(200), begun + picos_from_micros(300), true});
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 240 * kMtu)) ==
          PostResult::ok);
  CHECK(lab.run());
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::success);
  return sent[0].at - begun;
}

TEST_CASE("a pacer makes up for lost time as far as it may", "[transport]") {
  const Picos none = paced_across_stop(Picos{0});
  const Picos half = paced_across_stop(picos_from_micros(50));
  const Picos all = paced_across_stop(picos_from_micros(200));
  // A packet, of some 1,100 bytes, takes 4.4 us; by default one may be made up for.
  const auto lost = [&](Picos took) { return static_cast<double>((took - all).count) / 1e6; };
  CHECK(lost(none) == Approx(100 - 4.4).margin(5));
  CHECK(lost(half) == Approx(50).margin(5));
}

}  // namespace
}  // namespace paceline::transport::test
