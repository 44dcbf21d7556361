// A ceiling written by hand: the receiver hears no REQUEST, and the GRANTs are the test's own.
#include <algorithm>
#include <catch2/catch.hpp>

#include "dataplane/wire/extensions/control.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint64_t kMessageBytes = 1'000'000;

Packet grant_packet(const GrantMessage& grant) {
  wire::FlowAddressing from_b_to_a;
  from_b_to_a.source_mac = wire::MacAddress::local(2);
  from_b_to_a.destination_mac = wire::MacAddress::local(1);
  from_b_to_a.source = wire::IpAddress::v4(0x0A00'0002);
  from_b_to_a.destination = wire::IpAddress::v4(0x0A00'0001);
  const wire::HeaderTemplate header = wire::make_header_template(from_b_to_a);
  Packet packet;
  packet.header_bytes = static_cast<std::uint16_t>(
      wire::build_control(header, wire::HeaderBuffer{packet.header}, Psn(grant.grant_seq), grant));
  packet.icrc = wire::icrc(packet.header_view(), header.l3_offset);
  return packet;
}

TEST_CASE("a ceiling stops the sender short of it, and a higher one lets it go on", "[transport]") {
  LabOptions options;
  options.engine.peers = PeerPolicy::paceline;
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  Lab lab(options);
  lab.b().cable.set_script([](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = p.properties.operation == wire::Operation::request;
    return true;
  });
  const Lab::Pair pair = lab.connect();
  REQUIRE(lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, kMessageBytes)) ==
          PostResult::ok);

  // A GRANT names the channel by class and number; one for another is ignored. The sender takes it
  // once it has asked: what comes before answers something older.
  lab.run(lab.now() + picos_from_micros(1));
  GrantMessage grant;
  grant.traffic_class = lab.qp_config(0).traffic_class;
  grant.rate_mbps = 50'000;
  grant.lease_us = 1000;
  const auto& sent = lab.a().counters().tx_wire_bytes;
  const auto credit_time = [&] {
    return lab.a().engine.view().limiter_picos(
        lab.now())[static_cast<unsigned>(cc::Limiter::credit)];
  };
  // 100 us at 50 Gb/s are 625,000 bytes: each ceiling is reached long before the next.
  for (const std::uint64_t ceiling : {200'000U, 200'001U, 350'000U, 600'000U}) {
    CAPTURE(ceiling);
    const std::int64_t before = credit_time();
    grant.limit_total = ceiling;
    ++grant.grant_seq;
    lab.a().port.inject(lab.now(), grant_packet(grant), {});
    lab.run(lab.now() + picos_from_micros(100));
    std::uint32_t full_packet = 0;  // REQUESTs leave, too, and are smaller
    for (const auto& d : lab.a().port.departures())
      full_packet = std::max(full_packet, d.wire_bytes);
    CHECK(sent <= ceiling);
    CHECK(sent + full_packet > ceiling);  // and not a packet less than it may
    CHECK(credit_time() > before);        // the bound that is reported is this one
    CHECK(lab.a().sent().empty());
  }
  CHECK(lab.a().counters().fallbacks == 0);
  CHECK(lab.a().counters().control_ignored == 0);

  // A ceiling of another class, or a lower one than before, moves nothing.
  const std::uint64_t stopped_at = sent;
  for (const bool other_class : {true, false}) {
    GrantMessage no_news = grant;
    no_news.limit_total = other_class ? 2 * kMessageBytes : 100'000;
    no_news.traffic_class = static_cast<std::uint8_t>(grant.traffic_class - (other_class ? 1 : 0));
    no_news.grant_seq = ++grant.grant_seq;
    lab.a().port.inject(lab.now(), grant_packet(no_news), {});
    lab.run(lab.now() + picos_from_micros(100));
    CAPTURE(other_class);
    CHECK(sent == stopped_at);
    CHECK(lab.a().counters().control_ignored == 1);
  }

  grant.limit_total = 2 * kMessageBytes;
  ++grant.grant_seq;
  lab.a().port.inject(lab.now(), grant_packet(grant), {});
  lab.run(lab.now() + picos_from_micros(200));
  const auto completions = lab.a().sent();
  REQUIRE(completions.size() == 1);
  CHECK(completions[0].status == CompletionStatus::success);
  CHECK(sent <= grant.limit_total);
}

// Two channels between the same hosts: each is told only of itself.
TEST_CASE("GRANTs name the class of the channel that they are for", "[transport]") {
  LabOptions options;
  options.engine.peers = PeerPolicy::paceline;
  options.engine.primary = choose_cc(cc::AlgorithmId::cadence, options);
  options.engine.fallback = choose_cc(cc::AlgorithmId::dcqcn, options);
  Lab lab(options);
  std::vector<std::uint32_t> queue_pairs;
  for (const std::uint8_t traffic_class : {std::uint8_t{3}, std::uint8_t{5}, std::uint8_t{2}}) {
    QpConfig a = lab.qp_config(0);
    QpConfig b = lab.qp_config(1);
    a.traffic_class = b.traffic_class = traffic_class;
    queue_pairs.push_back(lab.connect(a, b, 100, 200).a);
  }
  for (std::uint64_t i = 0; i < 3; ++i) {
    REQUIRE(lab.post(0, queue_pairs[i],
                     lab.request(WorkOpcode::write, i, i * kMessageBytes, i * kMessageBytes,
                                 kMessageBytes)) == PostResult::ok);
  }
  CHECK(lab.run(picos_from_micros(100'000)));
  CHECK(lab.a().sent().size() == 3);
  CHECK(lab.a().counters().grants_received > 3);
  CHECK(lab.a().counters().control_ignored == 0);
  CHECK(lab.a().counters().fallbacks == 0);
  CHECK(lab.leftovers() == "");
}

}  // namespace
}  // namespace paceline::transport::test
