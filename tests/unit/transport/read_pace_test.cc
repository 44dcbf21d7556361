// Congestion control of READs: the sender of the data is responsible for it.
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"
#include "tests/unit/transport/read_support.h"

namespace paceline::transport::test {

// Whoever sends data owns the context: b's rate bounds READs by a, a's does not.
TEST_CASE("READ responses go at the responder's rate", "[transport][read]") {
  for (const bool slow_responder : {true, false}) {
    LabOptions options = small_packets();
    options.qp.retransmit_timeout = picos_from_micros(50'000);
    const std::pair<std::string_view, double> params[] = {{"rate_mbps", 1000.0}};
    options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, params);
    // The same engine settings on both sides; which of them sends the data makes the difference.
    Lab lab(options);
    Lab::fill(lab.b().memory, 8);
    const Lab::Pair pair = lab.connect();
    const std::uint64_t length = 200 * kMtu;
    Picos done{0};
    lab.on_poll = [&](unsigned) {
      if (done.count == 0 && !lab.a().send_cq.empty()) done = lab.now();
    };
    if (slow_responder) {
      lab.post(0, pair.a, read_of(lab, 1, 0, 0, length));
    } else {
      for (std::uint64_t id = 0; id < 16; ++id) lab.post(0, pair.a, read_of(lab, id, 0, 0, 0));
    }
    CHECK(lab.run(picos_from_micros(50'000)));
    const double wire_bytes = 200.0 * (kMtu + 14 + 20 + 8 + 12 + 8 + 20);
    const double at_rate_us = wire_bytes * 8 / 1000;
    const double took_us = static_cast<double>(done.count) / 1e6;
    CAPTURE(slow_responder, took_us);
    if (slow_responder) {
      CHECK(took_us > 0.98 * at_rate_us);
      CHECK(took_us < 1.05 * at_rate_us);
    } else {
      CHECK(took_us < 0.1 * at_rate_us);
    }
    CHECK(lab.leftovers().empty());
  }
}

// Nothing acknowledges a response: a window stands for a rate, window per unloaded round trip.
TEST_CASE("a responder's window paces READ responses", "[transport][read]") {
  LabOptions options = small_packets();
  options.engine.base_rtt_ns = 10'000;
  const std::pair<std::string_view, double> params[] = {{"rate_mbps", 0.0},
                                                        {"window_bytes", 12'500.0}};
  options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, params);
  options.qp.retransmit_timeout = picos_from_micros(50'000);
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  lab.post(0, pair.a, read_of(lab, 1, 0, 0, 100 * kMtu));
  CHECK(lab.run(picos_from_micros(50'000)));
  REQUIRE(lab.a().sent().size() == 1);
  // 12,500 bytes in 10 us are 10 Gb/s: each packet of 1,106 bytes on the wire takes 0.88 us.
  std::vector<Picos> times;
  for (const auto& d : lab.b().port.departures()) {
    if (d.wire_bytes > kMtu) times.push_back(d.at);
  }
  REQUIRE(times.size() == 100);
  const double us = static_cast<double>((times.back() - times.front()).count) / 1e6;
  CHECK(us > 99 * 0.86);
  CHECK(us < 99 * 0.90);
}

TEST_CASE("marked READ responses bring CNPs to the responder, and slow it down",
          "[transport][read]") {
  LabOptions options = small_packets();
  options.engine.primary = choose_cc(cc::AlgorithmId::dcqcn, options);
  options.engine.cnp_interval = picos_from_micros(4);
  options.qp.retransmit_timeout = picos_from_micros(50'000);
  Lab lab(options);
  Lab::fill(lab.b().memory, 3);
  const Lab::Pair pair = lab.connect();
  lab.a().cable.set_script([](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.mark = p.properties.operation == wire::Operation::read_response;
    return true;
  });
  lab.post(0, pair.a, read_of(lab, 1, 0, 0, 1000 * kMtu));
  CHECK(lab.run(picos_from_micros(100'000)));
  REQUIRE(lab.a().sent().size() == 1);
  CHECK(lab.a().counters().rx_ce_packets == 1000);
  CHECK(lab.a().counters().cnps_sent > 5);
  CHECK(lab.b().counters().cnps_received == lab.a().counters().cnps_sent);
  CHECK(lab.a().counters().cnps_received == 0);
  CHECK(same(lab, 0, 0, 1000 * kMtu));
  const auto& d = lab.b().port.departures();
  // At line rate they would take 89 us.
  CHECK((d.back().at - d.front().at) > picos_from_micros(180));
}

// REQUEST and GRANT for what the responder sends.
TEST_CASE("cadence: READs that wait to be asked for are covered by grants to the last",
          "[transport][read]") {
  for (const Reliability reliability : {Reliability::go_back_n, Reliability::selective}) {
    LabOptions options;
    options.link_rate = rate_from_gbps(10);
    options.delay = picos_from_nanos(12'500);
    options.engine.base_rtt_ns = 55'000;
    options.engine.reliability = reliability;
    options.qp.send_queue_depth = 256;
    options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    // Far more than what may start without a grant, all at once and nothing after it.
    for (std::uint64_t id = 0; id < 200; ++id) {
      REQUIRE(lab.post(0, pair.a, read_of(lab, id, 0, 0, 65'536)) == PostResult::ok);
    }
    std::size_t done = 0;
    lab.on_poll = [&](unsigned side) { done += side == 0 ? lab.a().sent().size() : 0; };
    // 13 MB take 10.6 ms at line rate.
    lab.run(picos_from_micros(20'000));
    CAPTURE(reliability);
    CHECK(done == 200);
  }
}

TEST_CASE("cadence: a responder asks for grants, as any sender of data does", "[transport][read]") {
  LabOptions options = small_packets();
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  options.qp.retransmit_timeout = picos_from_micros(5000);
  Lab lab(options);
  Lab::fill(lab.b().memory, 3);
  const Lab::Pair pair = lab.connect();
  lab.post(0, pair.a, read_of(lab, 1, 0, 0, 1000 * kMtu));
  CHECK(lab.run(picos_from_micros(100'000)));
  REQUIRE(lab.a().sent().size() == 1);
  CHECK(same(lab, 0, 0, 1000 * kMtu));
  CHECK(lab.b().counters().requests_sent > 0);
  CHECK(lab.a().counters().grants_sent > 0);
  CHECK(lab.b().counters().grants_received == lab.a().counters().grants_sent);
  CHECK(lab.a().counters().retransmitted_packets == 0);
  CHECK(lab.leftovers().empty());
}

}  // namespace paceline::transport::test
