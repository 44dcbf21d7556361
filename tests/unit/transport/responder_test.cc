// The responder's classes, and the requester's that talk to them, without an engine: packets go
// from one queue pair's state to the other's by hand.
#include "dataplane/transport/ends/responder.h"

#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/base/numbers/random.h"
#include "dataplane/transport/message/notification_point.h"
#include "dataplane/transport/message/scoreboard.h"
#include "dataplane/transport/message/send_window.h"
#include "dataplane/transport/read/read_responder.h"
#include "dataplane/wire/extensions/xack.h"
#include "tests/unit/transport/qp_bench.h"

namespace paceline::transport::test {
namespace {

// `a` asks, `b` answers.
struct Ends {
  explicit Ends(QpType type = QpType::rc) {
    for (Bench* bench : {&a, &b}) {
      bool created = false;
      QueuePair& qp = bench->qp;
      qp.config.type = type;
      qp.unreliable = !is_reliable(type);
      qp.requests = QueuePair::requests_of(type);
      qp.responses = QueuePair::responses_of(type);
      qp.config.receive_queue = &receives;
      qp.config.receive_cq = &bench->completions;
      qp.config.access = access::remote;
      qp.peer = bench->core.peers.find_or_add(wire::IpAddress::v4(0x0A00'0001), {}, 0, created);
      bench->core.peers[qp.peer].control = wire::make_header_template({});
      qp.remote_number = bench->qp.number;
      qp.responder.responses = ResponseQueue(4);
      qp.responder.position.start(Psn(Bench::kFirst));
    }
    b.region = b.core.regions.add_elided(0, 1U << 30, access::remote | access::local_write);
    remote_key = b.region;
  }
  void post(WorkOpcode opcode, std::uint64_t length, std::uint64_t address = 0) {
    WorkRequest request;
    request.opcode = opcode;
    request.length = length;
    request.local_key = a.region;
    request.local_address = address;
    request.remote_key = remote_key;
    request.remote_address = address;
    REQUIRE(a.requester.post(a.qp, request) == PostResult::ok);
    a.context().backlog_bytes = a.qp.requester.backlog_bytes;
  }
  // The next packet of `a`, from the pool of `b`.
  Packet* next(wire::ParsedPacket& parsed) {
    Packet* const packet = b.core.pool.alloc();
    REQUIRE(a.requester.build_next(a.qp, *packet));
    a.context().inflight_bytes = a.qp.requester.inflight_bytes;
    parse(*packet, parsed);
    return packet;
  }
  static void parse(const Packet& packet, wire::ParsedPacket& parsed) {
    REQUIRE(wire::parse_brief(packet.header_view(), packet.payload_bytes, {}, parsed) ==
            wire::ParseError::ok);
  }
  void deliver() {
    wire::ParsedPacket parsed;
    Packet* const packet = next(parsed);
    responder.on_request(b.qp, parsed, packet);
  }
  void lose() {
    wire::ParsedPacket parsed;
    b.core.pool.free(next(parsed));
  }
  // What `b` wants to send beside data, oldest first.
  std::vector<wire::ParsedPacket> answers() {
    std::vector<wire::ParsedPacket> all;
    while (Packet* const packet = b.core.control_head) {
      b.core.control_head = packet->next;
      parse(*packet, all.emplace_back());
      b.core.pool.free(packet);
    }
    b.core.control_tail = nullptr;
    b.core.waiting_acks = {};
    return all;
  }

  ReceiveQueue receives{8, ReceiveSharing::owned};
  Bench a, b;
  std::uint32_t remote_key = 0;
  Responder responder{b.core};
};

TEST_CASE("responder: a WRITE is placed; a gap brings one NAK, what was seen before an ACK",
          "[transport]") {
  Ends ends;
  ends.post(WorkOpcode::write, 4 * Bench::kMtu - 5, 64);
  ends.deliver();
  CHECK(ends.b.qp.responder.message.received() == Bench::kMtu);
  ends.lose();
  ends.deliver();
  ends.deliver();
  auto answers = ends.answers();
  REQUIRE(answers.size() == 2);  // the first is acknowledged
  CHECK(answers[0].ext.aeth.is_ack());
  CHECK(answers[1].ext.aeth.kind() == wire::AethKind::nak);
  CHECK(answers[1].psn == Psn(Bench::kFirst + 1));
  CHECK(ends.b.core.counters.dropped_gap == 2);

  for (const auto& answer : answers) ends.a.requester.on_acknowledge(ends.a.qp, answer);
  for (int i = 0; i < 3; ++i) ends.deliver();
  answers = ends.answers();
  REQUIRE_FALSE(answers.empty());
  CHECK(answers.back().ext.aeth.is_ack());
  CHECK(answers.back().psn == Psn(Bench::kFirst + 3));
  CHECK(ends.b.qp.responder.position.msn() == 1);
  CHECK(ends.b.core.counters.rx_data_bytes == 4 * Bench::kMtu - 5);
  CHECK(ends.b.core.counters.digest_mismatches == 0);  // every byte in its place

  // The ACK is lost: the last packet comes again.
  SendWindow::rewind(ends.a.core, ends.a.qp);
  ends.deliver();
  answers = ends.answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].psn == Psn(Bench::kFirst + 3));
  CHECK(ends.b.core.counters.duplicates == 1);
  CHECK(ends.b.core.counters.rx_data_bytes == 4 * Bench::kMtu - 5);
  ends.a.asked();
}

TEST_CASE("responder: a SEND without a receive request is put off, with one it completes",
          "[transport]") {
  Ends ends;
  ends.post(WorkOpcode::send, 100);
  ends.deliver();
  auto answers = ends.answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].ext.aeth.kind() == wire::AethKind::rnr_nak);
  REQUIRE(
      ends.receives.post({.wr_id = 9, .address = 0, .length = 100, .local_key = ends.b.region}));
  SendWindow::rewind(ends.a.core, ends.a.qp);
  ends.deliver();
  const auto done = ends.b.completed();
  REQUIRE(done.size() == 1);
  CHECK(done[0].wr_id == 9);
  CHECK(done[0].bytes == 100);
}

TEST_CASE("responder: what the peer may not do ends the connection, and places nothing",
          "[transport]") {
  const auto fault = GENERATE(0U, 1U, 2U);
  CAPTURE(fault);
  Ends ends;
  std::uint64_t length = 8;
  if (fault == 0) ends.remote_key = 0;
  if (fault == 1) ends.b.qp.config.access = access::remote_read;
  if (fault == 2) {
    REQUIRE(
        ends.receives.post({.wr_id = 1, .address = 0, .length = 8, .local_key = ends.b.region}));
    length = 9;
  }
  ends.post(fault == 2 ? WorkOpcode::send : WorkOpcode::write, length);
  ends.deliver();
  const auto answers = ends.answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].ext.aeth.kind() == wire::AethKind::nak);
  CHECK(answers[0].ext.aeth.nak_code() ==
        (fault == 2 ? wire::NakCode::invalid_request : wire::NakCode::remote_access_error));
  CHECK(ends.b.qp.state == QpState::error);
  CHECK(ends.b.core.counters.rx_data_packets == 0);
  CHECK(ends.b.core.counters.dropped_refused + ends.b.core.counters.dropped_no_access +
            ends.b.core.counters.dropped_too_long ==
        1);
  ends.b.asked();
}

// Both ends repair losses one by one.
struct SelectiveEnds : Ends {
  SelectiveEnds() {
    for (Bench* bench : {&a, &b}) {
      QueuePair& qp = bench->qp;
      qp.selective = std::make_unique<SelectiveState>(64);
      qp.selective->paths = PathSet(0xC000, 1, 1);
      qp.responder.selective = true;
      qp.selective->receive.early.start(qp.responder.position.expected());
      qp.requester.peer_selective = true;
      Scoreboard::begin(bench->core, qp);
    }
  }
  // The XACKs of `b` reach `a`; how many there were.
  std::size_t acknowledge() {
    std::size_t count = 0;
    for (; Packet* const packet = b.core.control_head; ++count) {
      b.core.control_head = packet->next;
      wire::ParsedPacket parsed;
      parse(*packet, parsed);
      wire::Xack xack;
      REQUIRE(wire::parse_xack(wire::xack_body(packet->header_view(), parsed), xack) ==
              wire::ParseError::ok);
      a.requester.on_xack(a.qp, parsed, xack);
      b.core.pool.free(packet);
    }
    b.core.control_tail = nullptr;
    b.core.waiting_acks = {};
    return count;
  }
};

TEST_CASE("selective repeat: of a WRITE that loses some packets, these are sent again, no others",
          "[transport]") {
  const auto seed = GENERATE(1U, 2U, 3U, 4U, 5U);
  CAPTURE(seed);
  Random random(seed);
  SelectiveEnds ends;
  constexpr std::uint32_t kPackets = 40;
  ends.post(WorkOpcode::write, kPackets * Bench::kMtu, 64);
  std::uint32_t lost = 0;
  for (std::uint32_t i = 0; i < kPackets; ++i) {
    ends.a.core.now = ends.b.core.now = ends.a.core.now + picos_from_nanos(100);
    // What comes last shows what was lost before.
    if (i + 1 < kPackets && random.below(4) == 0) {
      ends.lose();
      ++lost;
    } else {
      ends.deliver();
    }
  }
  REQUIRE(lost != 0);
  CHECK(ends.b.core.counters.rx_data_packets == kPackets - lost);  // each placed as it came
  CHECK(ends.acknowledge() != 0);
  // Reordering is given its time, then what is missing counts as lost.
  ends.a.core.now = ends.b.core.now = ends.a.core.now + picos_from_micros(100);
  ends.a.requester.on_timer(ends.a.qp);
  REQUIRE(ends.a.qp.requester.repair);
  for (std::uint32_t i = 0; i < lost; ++i) {
    REQUIRE(ends.a.qp.requester.repair);
    ends.deliver();
  }
  CHECK_FALSE(ends.a.qp.requester.repair);
  CHECK(ends.a.core.counters.retransmitted_packets == lost);
  CHECK(ends.b.qp.responder.position.expected() == Psn(Bench::kFirst + kPackets));
  CHECK(ends.b.core.counters.digest_mismatches == 0);
  ends.acknowledge();
  CHECK(ends.a.completed().size() == 1);
  CHECK(ends.a.qp.requester.inflight_bytes == 0);
  CHECK(ends.a.qp.requester.backlog_bytes == 0);
  CHECK(Scoreboard::repair_adds_up(ends.a.qp));
  ends.a.asked();
  ends.b.asked();
}

TEST_CASE("selective repeat: a SEND behind a gap waits its turn", "[transport]") {
  SelectiveEnds ends;
  for (std::uint64_t id : {1U, 2U}) {
    REQUIRE(
        ends.receives.post({.wr_id = id, .address = 0, .length = 64, .local_key = ends.b.region}));
    ends.post(WorkOpcode::send, 8 * id);
  }
  wire::ParsedPacket parsed;
  Packet* const first = ends.next(parsed);
  ends.deliver();
  CHECK(ends.b.completed().empty());
  CHECK(ends.b.qp.selective->receive.early.held() == 1);
  ends.responder.on_request(ends.b.qp, parsed, first);
  const auto done = ends.b.completed();
  REQUIRE(done.size() == 2);
  CHECK(done[0].bytes == 8);
  CHECK(done[1].bytes == 16);
  CHECK(ends.b.qp.selective->receive.early.held() == 0);
  ends.acknowledge();
  CHECK(ends.a.completed().size() == 2);
  ends.a.asked();
}

TEST_CASE("selective repeat: a READ response that is lost is asked for again, alone",
          "[transport]") {
  SelectiveEnds ends;
  ends.post(WorkOpcode::read, 4 * Bench::kMtu, 64);
  ends.deliver();
  ends.acknowledge();
  const auto respond = [&](bool lose) {
    REQUIRE(ends.b.qp.response_ready);
    Packet* const packet = ends.a.core.pool.alloc();
    REQUIRE(ReadResponder::build(ends.b.core, ends.b.qp, *packet));
    wire::ParsedPacket parsed;
    Ends::parse(*packet, parsed);
    if (lose) {
      ends.a.core.pool.free(packet);
    } else {
      ends.a.requester.on_response(ends.a.qp, parsed, packet);
    }
    return parsed.psn;
  };
  for (const bool lose : {false, true, false, false}) {
    ends.a.core.now = ends.b.core.now = ends.a.core.now + picos_from_micros(1);
    respond(lose);
  }
  CHECK_FALSE(ends.b.qp.response_ready);
  CHECK(ends.a.completed().empty());
  ends.a.core.now = ends.b.core.now = ends.a.core.now + picos_from_micros(100);
  ends.a.requester.on_timer(ends.a.qp);
  REQUIRE(ends.a.qp.requester.repair);
  wire::ParsedPacket again;
  Packet* const request = ends.next(again);
  CHECK(again.psn == Psn(Bench::kFirst + 1));
  CHECK(again.ext.reth.length == Bench::kMtu);
  ends.responder.on_request(ends.b.qp, again, request);
  CHECK(respond(false) == Psn(Bench::kFirst + 1));
  CHECK_FALSE(ends.b.qp.response_ready);
  CHECK(ends.a.completed().size() == 1);
  CHECK(ends.a.core.counters.digest_mismatches == 0);
  CHECK(ends.a.qp.requester.inflight_bytes == 0);
  ends.a.asked();
  ends.b.asked();
}

TEST_CASE("READ responder: the responses have the numbers of the request, and their bytes",
          "[transport]") {
  Ends ends;
  ends.post(WorkOpcode::read, 3 * Bench::kMtu + 1, 128);
  ends.deliver();
  QueuePair& qp = ends.b.qp;
  CHECK(qp.response_ready);
  CHECK(qp.responder.backlog_bytes == 3 * Bench::kMtu + 1);
  CHECK(qp.responder.position.expected() == Psn(Bench::kFirst + 4));
  using wire::Opcode;
  const Opcode opcodes[] = {Opcode::rc_read_response_first, Opcode::rc_read_response_middle,
                            Opcode::rc_read_response_middle, Opcode::rc_read_response_last};
  for (std::uint32_t i = 0; i < 4; ++i) {
    REQUIRE(qp.response_ready);
    Packet* const packet = ends.b.core.pool.alloc();
    const std::uint32_t expected = ReadResponder::next_wire_bytes(ends.b.core, qp);
    REQUIRE(ReadResponder::build(ends.b.core, qp, *packet));
    CHECK(packet->wire_bytes == expected);
    wire::ParsedPacket parsed;
    Ends::parse(*packet, parsed);
    CHECK(parsed.opcode == opcodes[i]);
    CHECK(parsed.psn == Psn(Bench::kFirst + i));
    CHECK(parsed.payload_bytes == (i == 3 ? 1 : Bench::kMtu));
    CHECK(ReadRequester::accept(ends.a.core, ends.a.qp, parsed, *packet) == ResponseOutcome::done);
    ends.b.core.pool.free(packet);
  }
  CHECK_FALSE(qp.response_ready);
  CHECK(qp.responder.backlog_bytes == 0);
  CHECK(ends.a.core.counters.digest_mismatches == 0);
  const auto done = ends.a.completed();
  REQUIRE(done.size() == 1);
  CHECK(done[0].opcode == CompletionOpcode::read);
  ends.a.asked();
  ends.b.asked();
}

TEST_CASE("UC: a lost packet costs its message, the next one arrives", "[transport]") {
  Ends ends(QpType::uc);
  for (int i = 0; i < 2; ++i) ends.post(WorkOpcode::write, 3 * Bench::kMtu);
  ends.deliver();
  ends.lose();
  ends.deliver();
  CHECK(ends.b.core.counters.dropped_gap == 1);
  CHECK(ends.b.core.counters.unreliable_drops == 1);
  CHECK_FALSE(ends.b.qp.responder.message.open());
  for (int i = 0; i < 3; ++i) ends.deliver();
  CHECK(ends.b.core.counters.rx_data_packets == 4);
  CHECK(ends.b.qp.counters.rx_bytes == 3 * Bench::kMtu);
  CHECK(ends.a.completed().size() == 2);  // whether they arrived or not
  CHECK(ends.answers().empty());
}

TEST_CASE("notification point: one CNP in an interval, and none where another echo is wanted",
          "[transport]") {
  Ends ends;
  EngineCore& core = ends.b.core;
  for (int i = 0; i < 3; ++i) NotificationPoint::on_marked(core, ends.b.qp);
  auto answers = ends.answers();
  REQUIRE(answers.size() == 1);
  CHECK(answers[0].opcode == wire::Opcode::cnp);
  CHECK(answers[0].dest_qpn == ends.b.qp.remote_number);
  core.now = core.now + core.config.cnp_interval;
  NotificationPoint::on_marked(core, ends.b.qp);
  CHECK(ends.answers().size() == 1);
  core.now = core.now + core.config.cnp_interval;
  core.peers[ends.b.qp.peer].echo = EcnEcho::xack;
  NotificationPoint::on_marked(core, ends.b.qp);
  CHECK(ends.answers().empty());
  CHECK(core.counters.rx_ce_packets == 5);
  CHECK(core.counters.cnps_sent == 2);
}

}  // namespace
}  // namespace paceline::transport::test
