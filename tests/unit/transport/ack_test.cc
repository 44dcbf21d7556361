// Acknowledgements: how often they are asked for, and those that must change nothing.
#include <catch2/catch.hpp>
#include <cstring>

#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

LabOptions with_ack_every(std::uint32_t every) {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.engine.ack_every = every;
  return options;
}

// An acknowledgement from b to a that b did not send.
void forge(Lab& lab, std::uint32_t qp, std::uint32_t psn, wire::Aeth aeth) {
  wire::FlowAddressing flow;
  flow.source_mac = wire::MacAddress::local(2);
  flow.destination_mac = wire::MacAddress::local(1);
  flow.source = wire::IpAddress::v4(0x0A00'0002);
  flow.destination = wire::IpAddress::v4(0x0A00'0001);
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  Packet packet;
  packet.header_bytes = static_cast<std::uint16_t>(
      wire::build_acknowledge(header, wire::HeaderBuffer{packet.header}, qp, Psn(psn), aeth));
  packet.icrc = wire::icrc(packet.header_view(), header.l3_offset);
  lab.a().port.inject(lab.now(), packet, {});
}

TEST_CASE("one ACK at the start, for every ack_every packets, and at the end of a message",
          "[transport]") {
  struct Row {
    std::uint32_t every;
    std::uint64_t acks;  // for a message of 100 packets, then one of 3
  };
  for (const Row row : {Row{1, 103}, Row{4, 25 + 1 + 1}, Row{16, 7 + 1 + 1}}) {
    Lab lab(with_ack_every(row.every));
    Lab::fill(lab.a().memory, row.every);
    const Lab::Pair pair = lab.connect();
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 100 * kMtu));
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 100 * kMtu, 100 * kMtu, 3 * kMtu));
    CHECK(lab.run(picos_from_micros(5000)));
    CAPTURE(row.every);
    CHECK(lab.a().sent().size() == 2);
    CHECK(lab.b().counters().acks_sent == row.acks);
    CHECK(lab.a().counters().acks_received == row.acks);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(std::memcmp(lab.a().memory.data(), lab.b().memory.data(), 103 * kMtu) == 0);
    CHECK(lab.leftovers().empty());
  }
}

TEST_CASE("coalescing never waits for the timer: small window, slow pacing", "[transport]") {
  struct Row {
    double rate_mbps;
    double window_bytes;
  };
  for (const Row row : {Row{0, 2500}, Row{10, 0}, Row{10, 2500}}) {
    LabOptions options = with_ack_every(16);
    const std::pair<std::string_view, double> params[] = {{"rate_mbps", row.rate_mbps},
                                                          {"window_bytes", row.window_bytes}};
    options.engine.primary = choose_cc(cc::AlgorithmId::fixed, options, params);
    Lab lab(options);
    const Lab::Pair pair = lab.connect();
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 60 * kMtu));
    CHECK(lab.run(picos_from_micros(200'000)));
    CAPTURE(row.rate_mbps, row.window_bytes);
    CHECK(lab.a().sent().size() == 1);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(lab.a().counters().retransmitted_packets == 0);
  }
}

TEST_CASE("stale, repeated and ghost answers change nothing and are counted", "[transport]") {
  Lab lab(with_ack_every(1));
  const Lab::Pair pair = lab.connect(100, 0);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 4 * kMtu));  // PSNs 100 .. 103
  CHECK(lab.run(picos_from_micros(5000)));
  REQUIRE(lab.a().sent().size() == 1);
  const std::uint64_t acks = lab.a().counters().acks_received;
  using wire::Aeth;
  using wire::NakCode;
  const struct {
    std::uint32_t psn;
    Aeth aeth;
  } ghosts[] = {
      {103, Aeth::ack(1)},  // the last one again
      {101, Aeth::ack(1)},
      {99, Aeth::ack(0)},
      {104, Aeth::ack(2)},  // of a packet that was never sent
      {5000, Aeth::ack(2)},
      {104, Aeth::nak(1, NakCode::psn_sequence_error)},
      {104, Aeth::nak(1, NakCode::remote_access_error)},
      {104, Aeth::nak(1, NakCode::invalid_request)},
      {103, Aeth::nak(1, NakCode::psn_sequence_error)},
      {104, Aeth::rnr_nak(1, 12)},
      {0x80'0064, Aeth::ack(2)},  // half the number space away
  };
  for (const auto& ghost : ghosts) {
    forge(lab, pair.a, ghost.psn, ghost.aeth);
    CHECK(lab.run(lab.now() + picos_from_micros(10)));
  }
  const auto& a = lab.a().counters();
  CHECK(a.acks_received == acks + std::size(ghosts));
  CHECK(a.stale_acks == std::size(ghosts));
  CHECK(a.naks_received == 0);
  CHECK(a.error_naks_received == 0);
  CHECK(a.rnr_received == 0);
  CHECK(a.retransmitted_packets == 0);
  CHECK(lab.a().sent().empty());
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::rts);
  // And it still works.
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 0, 0, 1));
  CHECK(lab.run(lab.now() + picos_from_micros(5000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(lab.leftovers().empty());
}

// Linux soft-RoCE answers the packets behind one that its receiver is not ready for with a sequence
// NAK besides the RNR NAK, each time. One that arrives during the next try is taken for
// the NAK of a loss; but a peer that keeps saying "not ready" gets everything.
TEST_CASE("sequence NAKs beside RNR NAKs do not use up the retries", "[transport]") {
  LabOptions options = with_ack_every(1);
  options.qp.min_rnr_timer = 4;  // 40 us
  options.qp.rnr_retry = 7;      // for ever
  Lab lab(options);
  const Lab::Pair pair = lab.connect(100, 0);
  Picos last{0};
  lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    if (p.psn == Psn(100) && (last.count == 0 || lab.now() - last > picos_from_micros(20))) {
      last = lab.now();
      forge(lab, pair.a, 100, wire::Aeth::nak(0, wire::NakCode::psn_sequence_error));
    }
    return true;
  });
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 6 * kMtu));
  CHECK_FALSE(lab.run(picos_from_micros(1000)));
  const auto& a = lab.a().counters();
  CHECK(a.naks_received > 14);  // twice the retries
  CHECK(a.rnr_received > 14);
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::rts);
  CHECK(lab.a().sent().empty());
  lab.b().cable.set_script({});
  REQUIRE(lab.b().post_receive(5, 0, 6 * kMtu));
  CHECK(lab.run(picos_from_micros(5000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::success);
  CHECK(lab.leftovers().empty());
}

TEST_CASE("one ACK acknowledges everything before it", "[transport]") {
  Lab lab(with_ack_every(1));
  const Lab::Pair pair = lab.connect(100, 0);
  lab.a().cable.set_script([](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    verdict.drop = p.psn.value() != 109;  // of ten, only the last ACK comes through
    return true;
  });
  for (std::uint64_t id = 0; id < 5; ++id) {
    lab.post(0, pair.a, lab.request(WorkOpcode::write, id, 0, 0, 2 * kMtu));
  }
  CHECK(lab.run(picos_from_micros(5000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 5);
  for (std::uint64_t id = 0; id < 5; ++id) CHECK(sent[id].wr_id == id);
  CHECK(lab.a().counters().acks_received == 1);
  CHECK(lab.a().counters().retransmitted_packets == 0);
}

}  // namespace
}  // namespace paceline::transport::test
