// Notification of congestion: CNPs by interval and flow, and the mark in the ACK.
#include <catch2/catch.hpp>

#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

LabOptions all_marked() {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.impairments.mark = 1;
  return options;
}

TEST_CASE("at most one CNP per interval and flow", "[transport]") {
  LabOptions options = all_marked();
  options.engine.cnp_interval = picos_from_micros(50);
  Lab lab(options);
  std::vector<std::vector<Picos>> cnps(2);
  const Lab::Pair first = lab.connect(0, 0);
  const Lab::Pair second = lab.connect(50, 0);
  lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    if (p.properties.operation == wire::Operation::cnp) {
      cnps[p.dest_qpn == first.a ? 0 : 1].push_back(lab.now());
    }
    return true;
  });
  lab.post(0, first.a, lab.request(WorkOpcode::write, 1, 0, 0, 3'000'000));
  lab.post(0, second.a, lab.request(WorkOpcode::write, 2, 0, 0, 3'000'000));
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto& b = lab.b().counters();
  CHECK(b.rx_ce_packets == 2 * 2930);  // every data packet; ACKs are not ECN-capable
  CHECK(lab.b().counters().cnps_sent == cnps[0].size() + cnps[1].size());
  // 6 MB with 7.6 % of headers take 517 us at 100 Gb/s: 10 or 11 intervals each.
  for (const auto& times : cnps) {
    CHECK(times.size() >= 10);
    CHECK(times.size() <= 11);
    for (std::size_t i = 1; i < times.size(); ++i) {
      // A CNP may wait for one data packet on the way out.
      CHECK(times[i] - times[i - 1] >= picos_from_micros(50) - picos_from_nanos(100));
    }
  }
  CHECK(lab.leftovers().empty());
}

TEST_CASE("interval 0: a CNP for every marked packet", "[transport]") {
  LabOptions options = all_marked();
  options.engine.cnp_interval = {0};
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 20 * kMtu));
  CHECK(lab.run(picos_from_micros(5000)));
  CHECK(lab.b().counters().cnps_sent == 20);
  CHECK(lab.a().counters().cnps_received == 20);
}

TEST_CASE("cnp_in_ack: the mark rides in the ACK, one per marked packet", "[transport]") {
  LabOptions options = all_marked();
  options.engine.cnp_in_ack = true;
  options.engine.ack_every = 16;  // marked packets are acknowledged at once all the same
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 20 * kMtu));
  CHECK(lab.run(picos_from_micros(5000)));
  CHECK(lab.b().counters().cnps_sent == 0);
  CHECK(lab.b().counters().acks_sent == 20);
  CHECK(lab.a().counters().cnps_received == 20);
}

TEST_CASE("unmarked traffic brings no CNP", "[transport]") {
  LabOptions options = all_marked();
  options.impairments.mark = 0;
  Lab lab(options);
  const Lab::Pair pair = lab.connect();
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 20 * kMtu));
  CHECK(lab.run(picos_from_micros(5000)));
  CHECK(lab.b().counters().cnps_sent == 0);
  CHECK(lab.b().counters().rx_ce_packets == 0);
}

TEST_CASE("dcqcn slows down on CNPs and completes", "[transport]") {
  const auto duration = [](double mark) {
    LabOptions options = all_marked();
    options.impairments.mark = mark;
    options.engine.primary.algorithm = cc::AlgorithmId::dcqcn;
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 3'000'000));
    lab.run(picos_from_micros(1'000'000));
    const auto sent = lab.a().sent();
    REQUIRE(sent.size() == 1);
    CHECK(sent[0].status == CompletionStatus::success);
    return sent[0].at;
  };
  const Picos free = duration(0);
  const Picos marked = duration(1);
  // 3 MB take 258 us; with a CNP every 50 us and alpha near 1 the rate halves each time.
  CHECK(free < picos_from_micros(270));
  CHECK(marked > free * 3);
}

}  // namespace
}  // namespace paceline::transport::test
