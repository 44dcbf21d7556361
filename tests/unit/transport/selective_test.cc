// Selective repeat: only what was lost is sent again, what comes early waits or is placed, and all
// of it looks to applications as go-back-N does.
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <set>

#include "dataplane/wire/extensions/xack.h"
#include "tests/unit/transport/lab.h"

namespace paceline::transport::test {
namespace {

LabOptions selective(Multipath multipath = Multipath::none) {
  LabOptions options;
  options.engine.payload_mtu = kMtu;
  options.engine.reliability = Reliability::selective;
  options.engine.multipath = multipath;
  return options;
}

bool carries_data(const wire::ParsedPacket& p) { return p.properties.carries_payload(); }

TEST_CASE("selective: a lost packet is sent again, and no other", "[transport][selective]") {
  for (const WorkOpcode opcode : {WorkOpcode::write, WorkOpcode::send}) {
    Lab lab(selective());
    Lab::fill(lab.a().memory, 1);
    const Lab::Pair pair = lab.connect(100, 0);
    std::set<std::uint32_t> lost;
    lab.b().cable.set_script(drop_if([&](const auto& p) {
      return carries_data(p) && p.psn.value() % 30 == 20 && lost.insert(p.psn.value()).second;
    }));
    if (opcode == WorkOpcode::send) REQUIRE(lab.b().post_receive(1, 0, 100 * kMtu));
    REQUIRE(lab.post(0, pair.a, lab.request(opcode, 1, 0, 0, 100 * kMtu)) == PostResult::ok);
    CHECK(lab.run(picos_from_micros(10'000)));
    REQUIRE(lab.a().sent().size() == 1);
    CHECK(equal_memories(lab, 100 * kMtu));
    const auto& a = lab.a().counters();
    const auto& b = lab.b().counters();
    CHECK(lost.size() == 3);
    CHECK(a.lost_packets == lost.size());
    CHECK(a.retransmitted_packets == lost.size());
    CHECK(a.timeouts == 0);
    CHECK(a.tail_probes == 0);
    CHECK(b.naks_sent == 0);
    CHECK(b.duplicates == 0);
    // About a round trip's worth came behind each gap; a WRITE was placed at once, a SEND held.
    CHECK(b.out_of_sequence > 20);
    CHECK((opcode == WorkOpcode::write ? b.placed_early : b.held_early) == b.out_of_sequence);
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("selective: WRITEs wait for their turn where that is asked for",
          "[transport][selective]") {
  LabOptions options = selective();
  options.engine.place_in_order = true;
  Lab lab(options);
  Lab::fill(lab.a().memory, 2);
  const Lab::Pair pair = lab.connect(0, 0);
  int lost = 0;
  lab.b().cable.set_script(
      drop_if([&](const auto& p) { return carries_data(p) && p.psn.value() == 3 && lost++ == 0; }));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 20 * kMtu));
  CHECK(lab.run(picos_from_micros(1000)));
  CHECK(lab.b().counters().placed_early == 0);
  CHECK(lab.b().counters().held_early > 0);
  CHECK(equal_memories(lab, 20 * kMtu));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: a lost tail is found by a probe, long before the timer",
          "[transport][selective]") {
  for (const bool lose_data : {true, false}) {
    LabOptions options = selective();
    options.qp.retransmit_timeout = picos_from_micros(100'000);
    Lab lab(options);
    Lab::fill(lab.a().memory, 3);
    const Lab::Pair pair = lab.connect(0, 0);
    int lost = 0;
    auto& side = lose_data ? lab.b() : lab.a();
    side.cable.set_script(drop_if([&](const auto& p) {
      // The last packet of 10; or its XACK, which expects the next.
      return p.psn.value() == (lose_data ? 9U : 10U) && lost++ == 0;
    }));
    lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 10 * kMtu));
    CHECK(lab.run(picos_from_micros(200)));
    CHECK(lost == (lose_data ? 2 : lost));
    CHECK(lab.a().sent().size() == 1);
    CHECK(lab.a().counters().tail_probes == 1);
    CHECK(lab.a().counters().timeouts == 0);
    CHECK(equal_memories(lab, 10 * kMtu));
    CHECK(lab.leftovers() == "");
  }
}

// Acknowledgements are asked for seldom, and the packet that completes the message does not ask.
TEST_CASE("selective: what fills a gap is acknowledged, whether it asks or not",
          "[transport][selective]") {
  LabOptions options = selective(Multipath::packet);
  options.engine.ack_every = 16;
  Lab lab(options);
  Lab::fill(lab.a().memory, 13);
  const Lab::Pair pair = lab.connect(0, 0);
  lab.b().cable.set_script([](const wire::ParsedPacket& p, ImpairmentVerdict& verdict) {
    if (carries_data(p) && p.psn.value() == 8) verdict.hold = 1;  // the last but one comes last
    return true;
  });
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 10 * kMtu));
  CHECK(lab.run(picos_from_micros(200)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(lab.a().counters().tail_probes == 0);
  CHECK(lab.a().counters().retransmitted_packets == 0);
  CHECK(lab.b().counters().out_of_sequence == 1);
  CHECK(equal_memories(lab, 10 * kMtu));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: missing READ responses are asked for, and no others",
          "[transport][selective]") {
  Lab lab(selective());
  Lab::fill(lab.b().memory, 4);
  const Lab::Pair pair = lab.connect(0, 0);
  std::set<std::uint32_t> lost;
  lab.a().cable.set_script(drop_if([&](const auto& p) {
    const bool chosen = p.psn.value() == 10 || p.psn.value() == 11 || p.psn.value() == 40;
    return carries_data(p) && chosen && lost.insert(p.psn.value()).second;
  }));
  lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 100 * kMtu));
  CHECK(lab.run(picos_from_micros(10'000)));
  REQUIRE(lab.a().sent().size() == 1);
  CHECK(equal_memories(lab, 100 * kMtu));
  CHECK(lost.size() == 3);
  CHECK(lab.a().counters().implied_naks == 2);           // two gaps
  CHECK(lab.b().counters().retransmitted_packets == 3);  // three responses
  CHECK(lab.a().counters().timeouts == 0);
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: a SEND that was held can still be put off", "[transport][selective]") {
  LabOptions options = selective();
  options.qp.min_rnr_timer = 4;  // 40 us
  Lab lab(options);
  Lab::fill(lab.a().memory, 5);
  const Lab::Pair pair = lab.connect(0, 0);
  int lost = 0;
  lab.b().cable.set_script(
      drop_if([&](const auto& p) { return carries_data(p) && p.psn.value() == 0 && lost++ == 0; }));
  // The WRITE is lost, the two SENDs behind it are held; only one finds a receive request.
  REQUIRE(lab.b().post_receive(1, kMtu, kMtu));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, kMtu));
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 2, kMtu, 0, kMtu));
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 3, 2 * kMtu, 0, kMtu));
  CHECK_FALSE(lab.run(picos_from_micros(300)));
  CHECK(lab.a().sent().size() == 2);
  CHECK(lab.b().counters().held_early == 2);
  CHECK(lab.a().counters().rnr_received >= 4);
  CHECK(lab.a().counters().timeouts == 0);
  REQUIRE(lab.b().post_receive(2, 2 * kMtu, kMtu));
  CHECK(lab.run(picos_from_micros(1000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(lab.b().received().size() == 2);
  CHECK(equal_memories(lab, 3 * kMtu));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: what a refused request follows completes first", "[transport][selective]") {
  Lab lab(selective());
  Lab::fill(lab.b().memory, 6);
  const Lab::Pair pair = lab.connect(0, 0);
  lab.post(0, pair.a, lab.request(WorkOpcode::read, 1, 0, 0, 30 * kMtu));
  WorkRequest bad = lab.request(WorkOpcode::write, 2, 0, 0, 4 * kMtu);
  bad.remote_key ^= 1;
  lab.post(0, pair.a, bad);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 3, 0, 0, kMtu));
  CHECK(lab.run(picos_from_micros(10'000)));
  const auto sent = lab.a().sent();
  REQUIRE(sent.size() == 3);
  CHECK(sent[0].status == CompletionStatus::success);
  CHECK(equal_memories(lab, 30 * kMtu));
  CHECK(sent[1].status == CompletionStatus::remote_access_error);
  CHECK(sent[2].status == CompletionStatus::flushed);
  CHECK(lab.a().engine.view().state_of(pair.a) == QpState::error);
  CHECK(lab.b().engine.view().state_of(pair.b) == QpState::error);
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: no more packets are under way than are kept", "[transport][selective]") {
  LabOptions options = selective();
  options.engine.window_packets = 64;
  options.qp.retransmit_timeout = picos_from_micros(2000);
  Lab lab(options);
  Lab::fill(lab.a().memory, 7);
  const Lab::Pair pair = lab.connect(0, 0);
  std::uint32_t highest = 0;
  bool blocked = true;
  lab.b().cable.set_script(drop_if([&](const auto& p) {
    if (!carries_data(p)) return false;
    highest = std::max(highest, p.psn.value());
    return blocked && p.psn.value() == 0;
  }));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 200 * kMtu));
  CHECK_FALSE(lab.run(picos_from_micros(100)));
  CHECK(highest == 63);
  blocked = false;
  CHECK(lab.run(picos_from_micros(10'000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(lab.b().counters().beyond_window == 0);
  CHECK(equal_memories(lab, 200 * kMtu));
}

TEST_CASE("selective: held packets are bounded; more are dropped and come again",
          "[transport][selective]") {
  LabOptions options = selective();
  options.engine.reorder_packets = 8;
  Lab lab(options);
  Lab::fill(lab.a().memory, 8);
  const Lab::Pair pair = lab.connect(0, 0);
  int lost = 0;
  lab.b().cable.set_script(
      drop_if([&](const auto& p) { return carries_data(p) && p.psn.value() == 5 && lost++ == 0; }));
  REQUIRE(lab.b().post_receive(1, 0, 60 * kMtu));
  lab.post(0, pair.a, lab.request(WorkOpcode::send, 1, 0, 0, 60 * kMtu));
  CHECK(lab.run(picos_from_micros(10'000)));
  CHECK(lab.b().received().size() == 1);
  CHECK(lab.b().counters().held_early >= 8);
  CHECK(lab.b().counters().beyond_window > 0);
  CHECK(equal_memories(lab, 60 * kMtu));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: packets take several paths, and a bad one is avoided",
          "[transport][selective]") {
  LabOptions options = selective(Multipath::packet);
  options.engine.paths = 8;
  Lab lab(options);
  Lab::fill(lab.a().memory, 9);
  const Lab::Pair pair = lab.connect(0, 0);
  std::map<std::uint16_t, unsigned> used;
  std::uint16_t bad = 0;
  lab.b().cable.set_script(drop_if([&](const auto& p) {
    if (!carries_data(p)) return false;
    if (bad == 0) bad = p.udp_source_port;
    ++used[p.udp_source_port];
    return p.udp_source_port == bad;
  }));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 1000 * kMtu));
  CHECK(lab.run(picos_from_micros(10'000)));
  REQUIRE(lab.a().sent().size() == 1);
  CHECK(equal_memories(lab, 1000 * kMtu));
  CHECK(used.size() == 8);
  // Each loss in a row costs it twice as many turns.
  CHECK(used[bad] < 1000 / 8 / 3);
  CHECK(used[bad] > 3);  // but it is tried again
  CHECK(lab.a().counters().timeouts == 0);
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: a peer that does not offer it is served by go-back-N",
          "[transport][selective]") {
  for (const bool foreign : {true, false}) {
    LabOptions options = selective(Multipath::packet);
    options.engine.peers = foreign ? PeerPolicy::roce : PeerPolicy::paceline;
    options.foreign_b = !foreign;  // taken for one of ours, wrongly
    Lab lab(options);
    Lab::fill(lab.a().memory, 10);
    const Lab::Pair pair = lab.connect(0, 0);
    int lost = 0;
    std::set<std::uint16_t> ports;
    lab.b().cable.set_script(drop_if([&](const auto& p) {
      if (carries_data(p)) ports.insert(p.udp_source_port);
      return carries_data(p) && p.psn.value() == 20 && lost++ == 0;
    }));
    REQUIRE(lab.b().post_receive(1, 0, 1));
    lab.post(0, pair.a, lab.request(WorkOpcode::write_imm, 1, 0, 0, 100 * kMtu, 5));
    CHECK(lab.run(picos_from_micros(10'000)));
    CHECK(lab.a().sent().size() == 1);
    CHECK(lab.b().received().size() == 1);
    CHECK(equal_memories(lab, 100 * kMtu));
    CHECK(lab.b().counters().naks_sent >= 1);
    CHECK(lab.b().counters().placed_early == 0);
    if (foreign) CHECK(ports.size() == 1);
    CHECK(lab.leftovers() == "");
  }
}

TEST_CASE("selective: found out by HELLO, it begins with the next request on an idle connection",
          "[transport][selective]") {
  LabOptions options = selective();
  options.engine.peers = PeerPolicy::discover;
  Lab lab(options);
  Lab::fill(lab.a().memory, 11);
  const Lab::Pair pair = lab.connect(0, 0);
  std::set<std::uint32_t> lost;
  lab.b().cable.set_script(drop_if([&](const auto& p) {
    return carries_data(p) && p.psn.value() % 30 == 20 && lost.insert(p.psn.value()).second;
  }));
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 60 * kMtu));
  CHECK(lab.run(picos_from_micros(1000)));
  const auto first = lab.a().sent();
  REQUIRE(first.size() == 1);
  CHECK(first[0].status == CompletionStatus::success);
  CHECK(lab.a().counters().hellos_received >= 1);
  const std::uint64_t repeated = lab.a().counters().retransmitted_packets;
  CHECK(repeated > 10);  // it was in flight under go-back-N
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 2, 60 * kMtu, 60 * kMtu, 60 * kMtu));
  CHECK(lab.run(picos_from_micros(3000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(lost.size() == 4);
  CHECK(lab.a().counters().retransmitted_packets == repeated + 2);
  CHECK(equal_memories(lab, 120 * kMtu));
  CHECK(lab.leftovers() == "");
}

TEST_CASE("selective: XACKs out of nowhere change nothing that matters", "[transport][selective]") {
  Lab lab(selective());
  Lab::fill(lab.a().memory, 12);
  const Lab::Pair pair = lab.connect(0, 0);
  Random random(5);
  lab.post(0, pair.a, lab.request(WorkOpcode::write, 1, 0, 0, 400 * kMtu));
  wire::FlowAddressing flow;
  flow.source = lab.b().engine.address_of(pair.b, Psn(0)).ip;
  flow.destination = lab.a().engine.address_of(pair.a, Psn(0)).ip;
  const wire::HeaderTemplate header = wire::make_header_template(flow);
  for (int i = 0; i < 300; ++i) {
    // Blocks about the past, about packets that were never sent, and with bits for packets that are
    // not in flight.
    wire::Xack xack;
    xack.trigger = Psn(static_cast<std::uint32_t>(random.next()));
    xack.duplicate = random.below(2) == 0;
    xack.marked = random.below(2) == 0;
    xack.marked_port = static_cast<std::uint16_t>(random.next());
    xack.bitmap_offset = static_cast<std::uint16_t>(600 + random.below(5000));
    xack.bitmap = {random.next(), random.next()};
    const Psn expected(
        static_cast<std::uint32_t>(random.below(2) == 0 ? 0 : 500 + random.below(8'000'000)));
    Packet packet{};
    packet.header_bytes = static_cast<std::uint16_t>(
        wire::build_xack(header, wire::HeaderBuffer{packet.header}, pair.a, expected, xack));
    packet.bth_offset = static_cast<std::uint16_t>(header.bth_offset());
    packet.icrc = wire::icrc(packet.header_view(), header.l3_offset);
    lab.a().port.inject(picos_from_nanos(200 * i), packet, {});
  }
  CHECK(lab.run(picos_from_micros(10'000)));
  CHECK(lab.a().sent().size() == 1);
  CHECK(equal_memories(lab, 400 * kMtu));
  CHECK(lab.a().counters().stale_acks > 100);
  CHECK(lab.leftovers() == "");
}

}  // namespace
}  // namespace paceline::transport::test
