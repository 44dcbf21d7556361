// XRC: initiators, targets, and the shared receive queues that requests name.
#include <array>
#include <catch2/catch.hpp>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include "dataplane/wire/packet/build.h"
#include "dataplane/wire/packet/icrc.h"
#include "tests/unit/transport/verb_stream.h"

namespace paceline::transport::test {
namespace {

constexpr std::uint32_t kDomain = 5;

// A lab whose sides have a shared receive queue in a domain each, and a connection from a to b.
struct XrcLab {
  explicit XrcLab(const LabOptions& options) : lab(options) {
    for (unsigned side = 0; side < 2; ++side) {
      Lab::Side& s = lab.side(side);
      srq[side] = s.engine.add_domain_queue({&s.receives, &s.receive_cq, 0, kDomain});
    }
  }
  QpConfig initiator(unsigned side) const {
    QpConfig config = lab.qp_config(side);
    config.type = QpType::xrc_initiator;
    config.receive_queue = nullptr;
    config.receive_cq = nullptr;
    return config;
  }
  QpConfig target(unsigned side) const {
    QpConfig config = lab.qp_config(side);
    config.type = QpType::xrc_target;
    config.domain = kDomain;
    config.receive_queue = nullptr;
    config.send_cq = config.receive_cq = nullptr;
    return config;
  }
  Lab::Pair forth(std::uint32_t first = 100) {
    return lab.connect(initiator(0), target(1), first, 0);
  }
  WorkRequest request(WorkOpcode opcode, std::uint64_t length, std::uint32_t number) {
    WorkRequest r = lab.request(opcode, ++posted, 0, 0, length, 77);
    r.target_srq = number;
    return r;
  }

  Lab lab;
  std::array<std::uint32_t, 2> srq{};
  std::uint64_t posted = 0;
};

LabOptions with(std::uint64_t seed, bool selective, const Impairments& impairments) {
  LabOptions options;
  options.seed = seed;
  options.impairments = impairments;
  options.engine.payload_mtu = seed % 2 == 0 ? 1024 : 256;
  options.engine.ack_every = seed % 3 == 0 ? 16 : 1;
  options.qp.retransmit_timeout = picos_from_micros(100);
  options.qp.retry_count = 100;
  options.qp.max_rd_atomic = options.qp.max_dest_rd_atomic =
      static_cast<std::uint8_t>(1 + seed * 3 % 16);
  if (!selective) return options;
  options.engine.reliability = Reliability::selective;
  options.engine.multipath = seed % 2 == 0 ? Multipath::packet : Multipath::none;
  options.engine.window_packets = 64;
  options.engine.reorder_packets = 32;
  return options;
}

void run_all(const LabOptions& options) {
  CAPTURE(options.seed);
  XrcLab x(options);
  const Lab::Pair forth = x.forth(0xFF'FF00);
  const Lab::Pair back = x.lab.connect(x.target(0), x.initiator(1), 0, 17);
  const std::uint32_t mtu = options.engine.payload_mtu;
  VerbStream to_b(x.lab, 0, forth.a, options.seed, 150, mtu, x.srq[1]);
  VerbStream to_a(x.lab, 1, back.b, options.seed, 150, mtu, x.srq[0]);
  x.lab.on_poll = [&](unsigned) {
    to_b.take();
    to_a.take();
  };
  x.lab.run(picos_from_micros(60'000'000));
  to_b.finish();
  to_a.finish();
  CHECK(x.lab.leftovers() == "");
  if (options.impairments.drop != 0) return;
  for (unsigned side = 0; side < 2; ++side) {
    CHECK(x.lab.side(side).counters().retransmitted_packets == 0);
    CHECK(x.lab.side(side).counters().duplicates == 0);
  }
}

TEST_CASE("XRC: all verbs, both ways, over good and bad cables", "[transport][xrc]") {
  for (const bool selective : {false, true}) {
    CAPTURE(selective);
    for (std::uint64_t seed = 1; seed <= 3; ++seed) run_all(with(seed, selective, {}));
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      run_all(
          with(seed, selective,
               {.drop = 0.01, .corrupt = 0.01, .duplicate = 0.02, .reorder = 0.02, .mark = 0.1}));
    }
  }
}

TEST_CASE("XRC: requests name their queue in every packet, responses are of XRC and name none",
          "[transport][xrc]") {
  XrcLab x(small_packets());
  const Lab::Pair pair = x.forth();
  std::set<std::uint32_t> named;
  unsigned requests = 0;
  unsigned responses = 0;
  x.lab.b().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    CHECK(p.properties.service == wire::Service::xrc);
    CHECK(p.properties.is_request());
    CHECK(p.properties.has_xrc_eth());
    named.insert(p.ext.xrc_srq);
    ++requests;
    return false;
  });
  x.lab.a().cable.set_script([&](const wire::ParsedPacket& p, ImpairmentVerdict&) {
    CHECK(p.properties.service == wire::Service::xrc);
    CHECK(p.properties.is_response());
    CHECK_FALSE(p.properties.has_xrc_eth());
    ++responses;
    return false;
  });
  REQUIRE(x.lab.b().post_receive(1, 0, 3 * kMtu));
  for (const WorkOpcode opcode : {WorkOpcode::send, WorkOpcode::write, WorkOpcode::read,
                                  WorkOpcode::fetch_add, WorkOpcode::compare_swap}) {
    const std::uint64_t length = is_atomic(opcode) ? kAtomicBytes : 3 * kMtu;
    REQUIRE(x.lab.post(0, pair.a, x.request(opcode, length, x.srq[1])) == PostResult::ok);
  }
  CHECK(x.lab.run(picos_from_micros(5000)));
  CHECK(x.lab.a().sent().size() == 5);
  CHECK(named == std::set<std::uint32_t>{x.srq[1]});
  CHECK(requests == 3 + 3 + 1 + 1 + 1);
  CHECK(responses >= 3 + 1 + 1 + 1);
  CHECK(x.lab.leftovers() == "");
}

TEST_CASE("XRC: a message goes to the queue that it names, by that queue's rights",
          "[transport][xrc]") {
  XrcLab x(small_packets());
  Lab::Side& b = x.lab.b();
  // Another queue of the domain, with a completion queue and a protection domain of its own.
  constexpr std::uint32_t kPd = 9;
  ReceiveQueue receives(4, ReceiveSharing::shared, 4);
  CompletionQueue completions(8);
  std::vector<std::byte> memory(4096);
  constexpr std::uint64_t kAt = 0x900'0000;
  const std::uint32_t key =
      b.engine.regions().add_plain(kAt, memory, access::remote | access::local_write, kPd);
  const std::uint32_t other = b.engine.add_domain_queue({&receives, &completions, kPd, kDomain});
  const Lab::Pair pair = x.forth();
  Lab::fill(x.lab.a().memory, 1);

  std::array<Segment, 2> list{{{kAt + 100, 50, key}, {kAt + 300, 3000, key}}};
  ReceiveRequest listed;
  listed.wr_id = 42;
  listed.segments = list.data();
  listed.segment_count = 2;
  REQUIRE(receives.post(listed));
  REQUIRE(b.post_receive(1, 0, kMtu));
  REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::send_imm, 3000, other)) == PostResult::ok);
  REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::send, kMtu, x.srq[1])) == PostResult::ok);
  WorkRequest write = x.request(WorkOpcode::write, 10, other);
  write.remote_address = kAt;
  write.remote_key = key;
  REQUIRE(x.lab.post(0, pair.a, write) == PostResult::ok);
  CHECK(x.lab.run(picos_from_micros(5000)));
  CHECK(x.lab.a().sent().size() == 3);
  const auto usual = b.received();
  REQUIRE(usual.size() == 1);
  CHECK(usual[0].srq_number == x.srq[1]);
  CHECK(usual[0].qp_number == pair.b);
  std::array<Completion, 4> out;
  REQUIRE(completions.poll(out) == 1);
  CHECK(out[0].wr_id == 42);
  CHECK(out[0].srq_number == other);
  CHECK(out[0].bytes == 3000);
  CHECK(out[0].immediate == 77);
  CHECK(std::memcmp(&memory[100], x.lab.a().memory.data(), 50) == 0);
  CHECK(std::memcmp(&memory[300], x.lab.a().memory.data() + 50, 2950) == 0);

  // The same WRITE by the rights of the first queue.
  write.target_srq = x.srq[1];
  REQUIRE(x.lab.post(0, pair.a, write) == PostResult::ok);
  CHECK(x.lab.run(picos_from_micros(9000)));
  const auto sent = x.lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::remote_access_error);
  CHECK(b.engine.view().state_of(pair.b) == QpState::error);
  b.engine.remove_domain_queue(x.lab.now(), other);
  CHECK(x.lab.leftovers() == "");
}

TEST_CASE("XRC: a queue that is not there, or of another domain, ends this connection alone",
          "[transport][xrc]") {
  for (const bool selective : {false, true}) {
    CAPTURE(selective);
    XrcLab x(with(2, selective, {}));
    Lab::Side& b = x.lab.b();
    const std::uint32_t foreign =
        b.engine.add_domain_queue({&b.receives, &b.receive_cq, 0, kDomain + 1});
    const Lab::Pair good = x.forth();
    for (const std::uint32_t number : {std::uint32_t{0}, x.srq[1] + 1000, foreign}) {
      CAPTURE(number);
      const Lab::Pair pair = x.forth();
      REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::send, 10, number)) == PostResult::ok);
      REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::write, 10, x.srq[1])) == PostResult::ok);
      x.lab.run(x.lab.now() + picos_from_micros(5000));
      const auto sent = x.lab.a().sent();
      REQUIRE(sent.size() == 2);
      CHECK(sent[0].status == CompletionStatus::remote_invalid_request);
      CHECK(sent[1].status == CompletionStatus::flushed);
      CHECK(b.engine.view().state_of(pair.b) == QpState::error);
    }
    REQUIRE(b.post_receive(1, 0, 10));
    REQUIRE(x.lab.post(0, good.a, x.request(WorkOpcode::send, 10, x.srq[1])) == PostResult::ok);
    x.lab.run(x.lab.now() + picos_from_micros(5000));
    CHECK(x.lab.a().sent().size() == 1);
    CHECK(b.received().size() == 1);
  }
}

TEST_CASE("XRC: a queue that goes takes its message with it", "[transport][xrc]") {
  XrcLab x(small_packets());
  const Lab::Pair pair = x.forth();
  Lab::Side& b = x.lab.b();
  REQUIRE(b.post_receive(1, 0, 100 * kMtu));
  REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::send, 100 * kMtu, x.srq[1])) ==
          PostResult::ok);
  std::uint64_t polls = 0;
  x.lab.on_poll = [&](unsigned side) {
    if (side == 1 && ++polls == 20) b.engine.remove_domain_queue(x.lab.now(), x.srq[1]);
  };
  x.lab.run(picos_from_micros(5000));
  REQUIRE(polls > 20);
  const auto sent = x.lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::remote_invalid_request);
  CHECK(b.received().empty());
  CHECK(x.lab.leftovers() == "");
}

TEST_CASE("XRC: an empty queue is waited for", "[transport][xrc]") {
  XrcLab x(small_packets());
  const Lab::Pair pair = x.forth();
  REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::send, 10, x.srq[1])) == PostResult::ok);
  WorkRequest write = x.request(WorkOpcode::write_imm, 2 * kMtu, x.srq[1]);
  write.remote_key = x.lab.b().key;
  REQUIRE(x.lab.post(0, pair.a, write) == PostResult::ok);
  x.lab.run(picos_from_micros(3000));
  CHECK(x.lab.b().counters().rnr_sent > 0);
  REQUIRE(x.lab.b().post_receive(1, 0, 10));
  REQUIRE(x.lab.b().post_receive(2, 0, 10));
  x.lab.run(picos_from_micros(30'000));
  CHECK(x.lab.a().sent().size() == 2);
  const auto received = x.lab.b().received();
  REQUIRE(received.size() == 2);
  CHECK(received[1].opcode == CompletionOpcode::receive_write_imm);
}

// Linux wants no more than these; perftest sets all that RC has.
TEST_CASE("XRC: an initiator needs no attributes of answers, a target none of retries",
          "[transport][xrc]") {
  using namespace qp_attribute;
  constexpr QpType kIni = QpType::xrc_initiator;
  constexpr QpType kTgt = QpType::xrc_target;
  for (const auto& [from, to] :
       {std::pair(QpState::reset, QpState::init), std::pair(QpState::init, QpState::rtr),
        std::pair(QpState::rtr, QpState::rts)}) {
    const std::uint32_t rc = transition_rule(QpType::rc, from, to).required;
    CHECK(transition_rule(kIni, from, to).required == (rc & ~(max_dest_rd_atomic | min_rnr_timer)));
    CHECK(transition_rule(kTgt, from, to).required ==
          (rc & ~(retry_count | rnr_retry | max_rd_atomic)));
    for (const QpType type : {kIni, kTgt}) {
      CHECK(check_transition(type, from, to, rc | qp_attribute::state).ok());
    }
  }
  CHECK_FALSE(transition_rule(kIni, QpState::sqe, QpState::rts).allowed);
}

TEST_CASE("XRC: initiators take no requests, targets send none", "[transport][xrc]") {
  XrcLab x(small_packets());
  const Lab::Pair pair = x.forth();
  CHECK(x.lab.post(1, pair.b, x.request(WorkOpcode::send, 10, x.srq[0])) == PostResult::bad_opcode);
  CHECK(x.lab.post(0, pair.a, x.request(WorkOpcode::send, 10, 0x100'0000)) ==
        PostResult::bad_target);
  // Two initiators face each other: requests are counted and dropped, nobody fails by them.
  LabOptions options = small_packets();
  options.qp.retry_count = 1;
  XrcLab y(options);
  const Lab::Pair wrong = y.lab.connect(y.initiator(0), y.initiator(1), 0, 0);
  REQUIRE(y.lab.post(0, wrong.a, y.request(WorkOpcode::send, 10, y.srq[1])) == PostResult::ok);
  y.lab.run(picos_from_micros(50'000));
  const auto sent = y.lab.a().sent();
  REQUIRE(sent.size() == 1);
  CHECK(sent[0].status == CompletionStatus::retry_exceeded);
  CHECK(y.lab.b().counters().unsupported_operations == 2);
  CHECK(y.lab.b().engine.view().state_of(wrong.b) == QpState::rts);
}

TEST_CASE("XRC: each end hears at once that the other is abandoned", "[transport][xrc]") {
  for (const bool selective : {false, true}) {
    for (const unsigned gone : {0U, 1U}) {
      CAPTURE(selective, gone);
      XrcLab x(with(2, selective, {}));
      const Lab::Pair pair = x.forth();
      REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::write, 10, x.srq[1])) == PostResult::ok);
      x.lab.run(picos_from_micros(1000));
      const std::uint32_t numbers[] = {pair.a, pair.b};
      Engine& left = x.lab.side(1 - gone).engine;
      x.lab.side(gone).engine.abandon_qp(x.lab.now(), numbers[gone]);
      x.lab.touch(gone);
      x.lab.run(x.lab.now() + picos_from_micros(10));
      CHECK(left.view().state_of(numbers[1 - gone]) == QpState::error);
      std::array<AsyncEvent, 4> events;
      const std::size_t told = left.poll_events(events);
      REQUIRE(told > 0);
      CHECK(events[told - 1].kind == AsyncEventKind::qp_fatal);
      CHECK(events[told - 1].qp_number == numbers[1 - gone]);
      CHECK(x.lab.leftovers() == "");
    }
  }
}

// An ACK or NAK, as if from the side before this one, whatever its queue pair has sent.
void answer(Lab& lab, unsigned side, std::uint32_t qp, Psn psn, wire::Aeth aeth, bool xrc) {
  wire::FlowAddressing flow;
  flow.source_mac = wire::MacAddress::local(2 - side);
  flow.destination_mac = wire::MacAddress::local(1 + side);
  flow.source = wire::IpAddress::v4(0x0A00'0002 - side);
  flow.destination = wire::IpAddress::v4(0x0A00'0001 + side);
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  Packet packet;
  packet.header_bytes = static_cast<std::uint16_t>(
      wire::build_acknowledge(header, wire::HeaderBuffer{packet.header}, qp, psn, aeth, false));
  if (xrc) packet.header[header.bth_offset()] |= std::byte{wire::kXrcBits};
  packet.icrc = wire::icrc(packet.header_view(), header.l3_offset);
  lab.side(side).port.inject(lab.now(), packet, {});
  lab.run(lab.now() + picos_from_micros(1));
}

TEST_CASE("XRC: acknowledgements of another service say nothing", "[transport][xrc]") {
  XrcLab x(small_packets());
  const Lab::Pair pair = x.forth();
  x.lab.b().cable.set_script(drop_if([](const wire::ParsedPacket&) { return true; }));
  REQUIRE(x.lab.post(0, pair.a, x.request(WorkOpcode::send, 10, x.srq[1])) == PostResult::ok);
  x.lab.run(picos_from_micros(1));
  const auto& a = x.lab.a().counters();
  answer(x.lab, 0, pair.a, Psn(100), wire::Aeth::ack(1), false);
  CHECK(a.unsupported_operations == 1);
  CHECK(x.lab.a().sent().empty());
  answer(x.lab, 0, pair.a, Psn(100), wire::Aeth::ack(1), true);
  CHECK(a.acks_received == 1);
  CHECK(x.lab.a().sent().size() == 1);

  // A target asks nothing: of its own service it takes no more than the end of the connection.
  x.lab.b().cable.set_script({});
  const auto& b = x.lab.b().counters();
  const auto end = wire::Aeth::nak(0, wire::NakCode::remote_operational_error);
  answer(x.lab, 1, pair.b, Psn(0), wire::Aeth::ack(0), true);
  answer(x.lab, 1, pair.b, Psn(0), end, false);
  answer(x.lab, 1, pair.b, Psn(1), end, true);
  CHECK(b.unsupported_operations == 3);
  CHECK(b.acks_received == 0);
  CHECK(x.lab.b().engine.view().state_of(pair.b) == QpState::rts);
  answer(x.lab, 1, pair.b, Psn(0), end, true);
  CHECK(b.acks_received == 1);
  CHECK(x.lab.b().engine.view().state_of(pair.b) == QpState::error);
}

}  // namespace
}  // namespace paceline::transport::test
