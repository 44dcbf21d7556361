// What leaves when: pacing at fixed rates, the window, and fair shares of a shared context.
#include <algorithm>
#include <catch2/catch.hpp>
#include <map>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

LabOptions fixed_at(double rate_mbps, double window_bytes = 0) {
  LabOptions options;
  options.qp.retransmit_timeout = picos_from_micros(1'000'000);
  const std::pair<std::string_view, double> params[] = {{"rate_mbps", rate_mbps},
                                                        {"window_bytes", window_bytes}};
  options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, params);
  return options;
}

TEST_CASE("bytes sent in a span are the rate's, from 1 Mb/s to line", "[transport]") {
  for (const double mbps : {1.0, 37.0, 1000.0, 9999.0, 40'000.0, 99'000.0, 100'000.0}) {
    Lab lab(fixed_at(mbps));
    const Lab::Pair pair = lab.connect();
    const Rate rate{static_cast<std::uint64_t>(mbps * 1e6)};
    // 250 packets' worth of time, and more to send than fits.
    const Picos span = serialization_time(250 * std::uint64_t{4178}, rate);
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 2'000'000));
    lab.run(span);
    std::uint64_t bytes = 0;
    for (const auto& d : lab.a().port.departures()) bytes += d.wire_bytes;
    const auto ideal = static_cast<std::int64_t>(bytes_in(span, rate));
    const std::int64_t error = static_cast<std::int64_t>(bytes) - ideal;
    CAPTURE(mbps, bytes, ideal);
    CHECK(std::abs(error) <= std::max<std::int64_t>(4178 + 16, ideal / 200));
  }
}

TEST_CASE("no two packets are closer than the rate allows, but for the burst", "[transport]") {
  Lab lab(fixed_at(10'000));
  const Lab::Pair pair = lab.connect();
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 400'000));
  CHECK(lab.run(picos_from_micros(5'000'000)));
  const auto& departures = lab.a().port.departures();
  REQUIRE(departures.size() == 98);
  // Over any k packets: at least k - 2 intervals (pacing_burst_packets is 2).
  for (std::size_t i = 0; i < departures.size(); ++i) {
    std::uint64_t bytes = 0;
    for (std::size_t k = i + 1; k < departures.size(); ++k) {
      bytes += departures[k - 1].wire_bytes;
      const Picos least = serialization_time(bytes > 4178 ? bytes - 4178 : 0, rate_from_gbps(10));
      REQUIRE(departures[k].at - departures[i].at >= least - picos_from_nanos(1));
    }
  }
}

TEST_CASE("bytes in flight never exceed the window by more than a packet", "[transport]") {
  Lab lab(fixed_at(0, 30'000));
  const Lab::Pair pair = lab.connect();
  std::uint64_t peak = 0;
  lab.on_poll = [&](unsigned) { peak = std::max(peak, lab.a().engine.view().inflight_bytes()); };
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 2'000'000));
  CHECK(lab.run(picos_from_micros(5'000'000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(peak >= 30'000);
  CHECK(peak < 30'000 + 4200);
  // The time that the window was in the way is told: 8 packets a round trip of 2.3 us and more.
  const auto limits = lab.a().engine.view().limiter_picos(lab.now());
  CHECK(limits[static_cast<std::size_t>(cc::Limiter::window)] > 0);
}

TEST_CASE("two classes and many contexts share the port, the control class goes first",
          "[transport]") {
  LabOptions options = fixed_at(0);
  Lab lab(options);
  QpConfig high_a = lab.qp_config(0);
  QpConfig high_b = lab.qp_config(1);
  high_a.traffic_class = high_b.traffic_class = 5;
  const Lab::Pair low = lab.connect();
  const Lab::Pair high = lab.connect(high_a, high_b, 1, 2);
  lab.post(0, low.a, lab.request(WorkOpcode::write, 1, 0, 0, 400'000));
  lab.post(0, high.a, lab.request(WorkOpcode::write, 2, 0, 0, 400'000));
  CHECK(lab.run(picos_from_micros(5'000'000)));
  // Both want the whole line. The higher class wins whenever its pacer lets it.
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 2);
  CHECK(sent[0].wr_id == 2);
  CHECK(lab.leftovers().empty());
}

// One channel per peer: its queue pairs share it by bytes, whatever the sizes of their messages.
TEST_CASE("queue pairs of one context share by bytes on the wire", "[transport]") {
  LabOptions options;
  options.link_rate = rate_from_gbps(25);
  options.engine.payload_mtu = 1024;
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  options.qp.send_queue_depth = 512;
  Lab lab(options);
  constexpr std::array<std::uint64_t, 4> kSizes = {100, 1000, 1500, 200'000};
  std::array<Lab::Pair, 4> pairs;
  std::map<std::uint32_t, std::size_t> index_of;
  for (std::size_t i = 0; i < kSizes.size(); ++i) {
    pairs[i] = lab.connect(static_cast<std::uint32_t>(i * 100'000), 0);
    index_of[pairs[i].b] = i;
  }
  std::array<std::uint64_t, 4> bytes{};
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    if (p.properties.operation == wire::Operation::write) {
      bytes[index_of.at(p.dest_qpn)] +=
          WireAccounting{}.wire_bytes(p.header_bytes + p.padded_bytes() + 8, p.payload_bytes);
    }
    return true;
  });
  // Every queue is kept full all the time.
  lab.on_poll = [&](unsigned side) {
    if (side != 0) return;
    lab.a().sent();
    for (std::size_t i = 0; i < kSizes.size(); ++i) {
      while (lab.post(0, pairs[i].a, lab.request(WorkOpcode::write, 1, 0, 0, kSizes[i])) ==
             PostResult::ok) {
      }
    }
  };
  lab.run(picos_from_micros(300));
  bytes = {};
  lab.run(picos_from_micros(1000));
  const std::uint64_t total = bytes[0] + bytes[1] + bytes[2] + bytes[3];
  CAPTURE(bytes[0], bytes[1], bytes[2], bytes[3]);
  CHECK(total > 1'000'000);
  for (const std::uint64_t b : bytes) {
    // Within one quantum and packet of a quarter each.
    CHECK(b + 2 * 1118 >= total / 4);
    CHECK(b <= total / 4 + 2 * 1118);
  }
}

TEST_CASE("empty messages do not starve the others of a context", "[transport]") {
  LabOptions options;
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  options.qp.send_queue_depth = 4096;  // more than a round trip's worth of empty packets
  Lab lab(options);
  const Lab::Pair empty = lab.connect(0, 0);
  const Lab::Pair full = lab.connect(0, 0);
  std::uint64_t empties = 0;
  lab.on_poll = [&](unsigned side) {
    if (side != 0) return;
    lab.a().sent();
    while (empties < 100'000 &&
           lab.post(0, empty.a, lab.request(WorkOpcode::write, 1, 0, 0, 0)) == PostResult::ok) {
      ++empties;
    }
  };
  QpConfig config = lab.qp_config(0);
  CompletionQueue done(4);
  config.send_cq = &done;
  const Lab::Pair watched = lab.connect(config, lab.qp_config(1), 1, 2);
  lab.post(0, watched.a, lab.request(WorkOpcode::write, 9, 0, 0, 100'000));
  lab.post(0, full.a, lab.request(WorkOpcode::write, 8, 0, 0, 100'000));
  lab.run(picos_from_micros(100));
  CHECK(done.size() == 1);  // 200 KB take 17 us
}

}  // namespace
}  // namespace paceline::transport::test
